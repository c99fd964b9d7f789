// relu(x @ w + b)
// Written by `tools/generate.py` from `examples/affine_relu.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  superdsc.sdsc @"0_batchmatmul" splits {mb = 2, out = 1, in = 1} attributes {labels = {mb = "m", out = "n", in = "k"}} {
    superdsc.dsc batchmatmul sizes {mb = 2, out = 64, in = 64} classes {INPUT = [mb, in] stick {in = 64}, KERNEL = [in, out] stick {out = 64}, OUTPUT = [mb, out] stick {out = 64}} {
      %a0 = superdsc.allocate 0 in hbm [mb, in] symbolic start -1 + -1 * mb
      %a1 = superdsc.allocate 1 in hbm [in, out] symbolic start -3
      %a2 = superdsc.allocate 2 in lx [mb, out] start 0
      %t0 = superdsc.labeled_ds 0 INPUT SEN169_FP16 scale [1, 1] at %a0
      %t1 = superdsc.labeled_ds 1 KERNEL SEN169_FP16 scale [1, 1] at %a1
      %t2 = superdsc.labeled_ds 2 OUTPUT SEN169_FP16 scale [1, 1] at %a2
      superdsc.compute pt batchmatmul SEN169_FP16 (%t0, %t1) -> (%t2)
    }
  }
  superdsc.sdsc @"1_add" splits {mb = 2, out = 1} attributes {labels = {mb = "d0", out = "d1"}} {
    superdsc.dsc add sizes {mb = 2, out = 64} classes {OUTPUT = [mb, out] stick {out = 64}} {
      %a0 = superdsc.allocate 0 in lx [mb, out] start 0
      %a1 = superdsc.allocate 1 in hbm [out, mb] symbolic start -4
      %a2 = superdsc.allocate 2 in lx [mb, out] start 0
      %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0
      %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [-1, 1] at %a1
      %t2 = superdsc.labeled_ds 2 OUTPUT SEN169_FP16 scale [1, 1] at %a2
      superdsc.compute sfp add SEN169_FP16 (%t0, %t1) -> (%t2)
    }
  }
  superdsc.sdsc @"2_relufwd" splits {mb = 2, out = 1} attributes {labels = {mb = "d0", out = "d1"}} {
    superdsc.dsc relufwd sizes {mb = 2, out = 64} classes {OUTPUT = [mb, out] stick {out = 64}} {
      %a0 = superdsc.allocate 0 in lx [mb, out] start 0
      %a1 = superdsc.allocate 1 in hbm [mb, out] symbolic start -5 + -1 * mb
      %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0
      %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1] at %a1
      superdsc.compute sfp relufwd SEN169_FP16 (%t0) -> (%t1)
    }
  }
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>) {
    %arg0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %c128 = arith.constant 128 : index
    %arg0_at128 = arith.addi %arg0, %c128 : index
    %arg1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
    %arg2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
    %arg3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
    %arg3_at128 = arith.addi %arg3, %c128 : index
    sdscbundle.sdsc_execute (%arg0, %arg0_at128, %arg1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3]}
    sdscbundle.sdsc_execute (%arg2) {sdsc_filename="sdsc_1.json", symbol_ids=[-4]}
    sdscbundle.sdsc_execute (%arg3, %arg3_at128) {sdsc_filename="sdsc_2.json", symbol_ids=[-5, -6]}
    func.return
  }
  func.func @main(%x: tensor<2x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> (tensor<2x64xf32> {aten.layout = "default"}) {
    %0 = spyre.kernel.to_device %x : tensor<2x64xf32> to !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
    %1 = spyre.kernel.to_device %w : tensor<64x64xf32> to !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
    %2 = spyre.kernel.to_device %b : tensor<64xf32> to !spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>
    %3 = spyre.kernel.alloc : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
    spyre.kernel.launch @sdsc_bundle(%0, %1, %2, %3) elements {f32 = array<i64: 0, 1, 2>} : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>, !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>, !spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>, !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
    %4 = spyre.kernel.from_device %3 : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm> to tensor<2x64xf32>
    func.return %4 : tensor<2x64xf32>
  }
}
