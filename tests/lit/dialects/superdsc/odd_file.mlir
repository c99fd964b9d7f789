// RUN: spyre-opt %s | spyre-opt | filecheck %s

// What a file says beyond the rules is spelled out: unknown keys, missing keys, another key order, symbols, lists.

superdsc.sdsc @"3_neg" version TS25 splits {out = 4} fields {"a fork's key" = [1, null]} without [folds] {
  superdsc.dsc neg sizes {out = 256} classes {OUTPUT = [out] stick {out = 64}} {
    %a0 = superdsc.allocate 0 in hbm [out] symbolic start -1 + -1 * out
    %a1 = superdsc.allocate 1 in hbm [out] start [0, 128, 512, 256] fields {back_gap = {"out": {"-1": "64"}}}
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1] at %a0 order [format, index, name, class, scale, word_length, memory]
    %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1] at %a1
    superdsc.constant "0" bits 48128 of SEN169_FP16 named low
    superdsc.compute sfp neg SEN169_FP16 (%t0) -> (%t1)
  }
}

// CHECK:      superdsc.sdsc @"3_neg" version TS25 splits {out = 4} fields {"a fork's key" = [1, null]} without [folds] {
// CHECK:        %a0 = superdsc.allocate 0 in hbm [out] symbolic start -1 + -1 * out
// CHECK-NEXT:   %a1 = superdsc.allocate 1 in hbm [out] start [0, 128, 512, 256] fields {back_gap = {"out": {"-1": "64"}}}
// CHECK-NEXT:   %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1] at %a0 order [format, index, name, class, scale, word_length, memory]
// CHECK-NEXT:   %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1] at %a1
// CHECK-NEXT:   superdsc.constant "0" bits 48128 of SEN169_FP16 named low
