// REQUIRES: mlir-opt
// RUN: spyre-opt %s --print-op-generic | mlir-opt --allow-unregistered-dialect | filecheck %s

// A reader that knows MLIR but not the dialect follows an operation to its operand and to the operand's place.

superdsc.sdsc @"0_neg" splits {mb = 2} {
  superdsc.dsc neg sizes {mb = 128} classes {OUTPUT = [mb] stick {mb = 64}} {
    %a0 = superdsc.allocate 0 in lx [mb] start 0
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1] at %a0
    superdsc.compute sfp neg SEN169_FP16 (%t0) -> (%t0)
  }
}

// CHECK: "superdsc.sdsc"(){{.*}}splits = #superdsc.dims<{mb = 2}>
// CHECK: "superdsc.dsc"(){{.*}}classes = [#superdsc.class<OUTPUT = [mb] stick {mb = 64}>]
// CHECK: [[A:%.*]] = "superdsc.allocate"(){{.*}}component = "lx"
// CHECK: [[T:%.*]] = "superdsc.labeled_ds"([[A]]){{.*}}format = "SEN169_FP16"{{.*}}: (!superdsc.allocation) -> !superdsc.labeled_ds
// CHECK: "superdsc.compute"([[T]], [[T]]){{.*}}function = "neg"
