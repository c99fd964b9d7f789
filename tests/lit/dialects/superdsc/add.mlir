// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt --print-op-generic %s | spyre-opt | filecheck %s
// RUN: spyre-opt --print-op-generic %s | filecheck %s --check-prefix=GENERIC

// A 32-core add of two 128 x 256 tensors. What the text leaves out follows from what it says; the generic form has it.

superdsc.sdsc @"0_add" splits {mb = 32, out = 1} {
  superdsc.dsc add sizes {mb = 128, out = 256} classes {OUTPUT = [mb, out] stick {out = 64}} {
    superdsc.allocate 0 in hbm [mb, out] start 0 + 512 * mb
    superdsc.allocate 1 in hbm [mb, out] start 17179869184 + 512 * mb
    superdsc.allocate 2 in hbm [mb, out] start 34359738368 + 512 * mb
    superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1]
    superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1]
    superdsc.labeled_ds 2 OUTPUT SEN169_FP16 scale [1, 1]
    superdsc.compute sfp add SEN169_FP16 [0, 1] -> [2]
  }
}

// CHECK:      superdsc.sdsc @"0_add" splits {mb = 32, out = 1} {
// CHECK-NEXT:   superdsc.dsc add sizes {mb = 128, out = 256} classes {OUTPUT = [mb, out] stick {out = 64}} {
// CHECK-NEXT:     superdsc.allocate 0 in hbm [mb, out] start 0 + 512 * mb
// CHECK-NEXT:     superdsc.allocate 1 in hbm [mb, out] start 17179869184 + 512 * mb
// CHECK-NEXT:     superdsc.allocate 2 in hbm [mb, out] start 34359738368 + 512 * mb
// CHECK-NEXT:     superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1]
// CHECK-NEXT:     superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1]
// CHECK-NEXT:     superdsc.labeled_ds 2 OUTPUT SEN169_FP16 scale [1, 1]
// CHECK-NEXT:     superdsc.compute sfp add SEN169_FP16 [0, 1] -> [2]
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GENERIC: "superdsc.sdsc"() <{sym_name = "0_add"
// GENERIC: "[31, 0, 0]": "15872"
