// RUN: not spyre-run %s 2>&1 | filecheck %s
// RUN: not spyre-run %s --on-fault collect 2>&1 | filecheck %s --check-prefix ALL
// RUN: not spyre-run %s --on-fault warn 2>&1 | filecheck %s --check-prefix WARN
// Two tensors overlap in LX: the second is written before the first is read.

// CHECK:      error: [SPY-F001] stale-read: 1:abs has overwritten a part of what 0:exp wrote
// CHECK-NEXT:   at: sdsc_2.json: op 2:neg, Tensor0, core 0, bytes 0x2000000000..0x2000000002, model.py:3

// ALL:      result0: 4x64
// ALL-NEXT: stale-read: 1:abs has overwritten a part of what 0:exp wrote; at sdsc_2.json: op 2:neg, Tensor0, core 0, bytes 0x2000000000..0x2000000002, model.py:3
// ALL-NEXT: unwritten-output:

// WARN: warning: [SPY-F001] stale-read: 1:abs has overwritten a part of what 0:exp wrote
// WARN: warning: [SPY-F001] unwritten-output:

!t = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>

superdsc.sdsc @"0_exp" splits {mb = 2, out = 1} {
  superdsc.dsc exp sizes {mb = 4, out = 64} classes {OUTPUT = [mb, out] stick {out = 64}} {
    %a0 = superdsc.allocate 0 in hbm [mb, out] start 17179869184 + 256 * mb
    %a1 = superdsc.allocate 1 in lx [mb, out] start 0
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0
    %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1] at %a1
    superdsc.compute sfp exp SEN169_FP16 (%t0) -> (%t1)
  }
}
superdsc.sdsc @"1_abs" splits {mb = 2, out = 1} {
  superdsc.dsc abs sizes {mb = 4, out = 64} classes {OUTPUT = [mb, out] stick {out = 64}} {
    %a0 = superdsc.allocate 0 in hbm [mb, out] start 17179869184 + 256 * mb
    %a1 = superdsc.allocate 1 in lx [mb, out] start 128
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0
    %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1] at %a1
    superdsc.compute sfp abs SEN169_FP16 (%t0) -> (%t1)
  }
}
superdsc.sdsc @"2_neg" splits {mb = 2, out = 1} {
  superdsc.dsc neg sizes {mb = 4, out = 64} classes {OUTPUT = [mb, out] stick {out = 64}} {
    %a0 = superdsc.allocate 0 in lx [mb, out] start 0
    %a1 = superdsc.allocate 1 in hbm [mb, out] start 34359738368 + 256 * mb
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0
    %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1] at %a1
    superdsc.compute sfp neg SEN169_FP16 (%t0) -> (%t1)
  }
}
func.func @sdsc_bundle() {
  sdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"} loc("model.py":1:0)
  sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"} loc("model.py":2:0)
  sdscbundle.sdsc_execute () {sdsc_filename="sdsc_2.json"} loc("model.py":3:0)
  func.return
}
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = spyre.kernel.to_device %x segment 1 : tensor<4x64xf32> to !t
  %1 = spyre.kernel.alloc segment 2 : !t
  spyre.kernel.launch @sdsc_bundle(%0, %1) pool_bytes 512 : !t, !t
  %2 = spyre.kernel.from_device %1 : !t to tensor<4x64xf32>
  func.return %2 : tensor<4x64xf32>
}
