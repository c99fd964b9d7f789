// relu(x @ w + b)
// Written by `tools/generate.py` from `examples/affine_relu.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  func.func @main(%x: tensor<2x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> (tensor<2x64xf32> {aten.layout = "default"}) {
    %0 = spyre.kernel.to_device %x : tensor<2x64xf32> to !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
    %1 = spyre.kernel.to_device %w : tensor<64x64xf32> to !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
    %2 = spyre.kernel.alloc at 0 : i64 : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, lx>
    spyre.kernel.compute "batchmatmul" [m = 2 over 2, n = 64, k = 64] ins(%0[m, k] : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>, %1[k, n] : !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>) outs(%2[m, n] : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, lx>) element f32
    %3 = spyre.kernel.to_device %b : tensor<64xf32> to !spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>
    %4 = spyre.kernel.alloc at 0 : i64 : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, lx>
    spyre.kernel.compute "add" [d0 = 2 over 2, d1 = 64] ins(%2[d0, d1] : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, lx>, %3[d1] : !spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>) outs(%4[d0, d1] : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, lx>) element f32
    spyre.kernel.free %2 : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, lx>
    %5 = spyre.kernel.alloc : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
    spyre.kernel.compute "relufwd" [d0 = 2 over 2, d1 = 64] ins(%4[d0, d1] : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, lx>) outs(%5[d0, d1] : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>) element f32
    spyre.kernel.free %4 : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, lx>
    %6 = spyre.kernel.from_device %5 : !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm> to tensor<2x64xf32>
    func.return %6 : tensor<2x64xf32>
  }
}
