// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt --print-op-generic %s | spyre-opt | filecheck %s
// RUN: spyre-opt --print-op-generic %s | filecheck %s --check-prefix=GENERIC

// A 32-core add of two 128 x 256 tensors. What the text leaves out follows from what it says; the generic form has it.

superdsc.sdsc @"0_add" splits {mb = 32, out = 1} {
  superdsc.dsc add sizes {mb = 128, out = 256} classes {OUTPUT = [mb, out] stick {out = 64}} {
    %a0 = superdsc.allocate 0 in hbm [mb, out] start 0 + 512 * mb
    %a1 = superdsc.allocate 1 in hbm [mb, out] start 17179869184 + 512 * mb
    %a2 = superdsc.allocate 2 in hbm [mb, out] start 34359738368 + 512 * mb
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0
    %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1] at %a1
    %t2 = superdsc.labeled_ds 2 OUTPUT SEN169_FP16 scale [1, 1] at %a2
    superdsc.compute sfp add SEN169_FP16 (%t0, %t1) -> (%t2)
  }
}

// CHECK:      superdsc.sdsc @"0_add" splits {mb = 32, out = 1} {
// CHECK-NEXT:   superdsc.dsc add sizes {mb = 128, out = 256} classes {OUTPUT = [mb, out] stick {out = 64}} {
// CHECK-NEXT:     %a0 = superdsc.allocate 0 in hbm [mb, out] start 0 + 512 * mb
// CHECK-NEXT:     %a1 = superdsc.allocate 1 in hbm [mb, out] start 17179869184 + 512 * mb
// CHECK-NEXT:     %a2 = superdsc.allocate 2 in hbm [mb, out] start 34359738368 + 512 * mb
// CHECK-NEXT:     %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0
// CHECK-NEXT:     %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1] at %a1
// CHECK-NEXT:     %t2 = superdsc.labeled_ds 2 OUTPUT SEN169_FP16 scale [1, 1] at %a2
// CHECK-NEXT:     superdsc.compute sfp add SEN169_FP16 (%t0, %t1) -> (%t2)
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GENERIC: "superdsc.sdsc"() <{sym_name = "0_add", splits = #superdsc.dims<{mb = 32, out = 1}>
// GENERIC: "superdsc.dsc"() <{op_name = "add", sizes = #superdsc.dims<{mb = 128, out = 256}>
// GENERIC-SAME: classes = [#superdsc.class<OUTPUT = [mb, out] stick {out = 64}>]
// GENERIC: %a0 = "superdsc.allocate"() <{index = 0 : i64, component = "hbm", order = ["mb", "out"], start = array<i64: 0, 512,
// GENERIC-SAME: 15872>, rest = #superdsc.json<{
// GENERIC: %t0 = "superdsc.labeled_ds"(%a0) <{index = 0 : i64, class = "OUTPUT", scale = array<i64: 1, 1>, format = "SEN169_FP16"
// GENERIC-SAME: : (!superdsc.allocation) -> !superdsc.labeled_ds
// GENERIC: "superdsc.compute"(%t0, %t1, %t2) <{
// GENERIC-SAME: function = "add"
