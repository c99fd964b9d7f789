// relu(x @ w + b)
// Written by `tools/generate.py` from `examples/affine_relu.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  func.func @main(%x: tensor<2x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> (tensor<2x64xf32> {aten.layout = "default"}) {
    %0 = spyre.loop.nest [m = 2, n = 64, k = 64] ins(%x[m, k] : tensor<2x64xf32>, %w[k, n] : tensor<64x64xf32>) -> [m, n] : tensor<2x64xf32> reduce "arith.addf" {
    ^bb0(%1: f32, %2: f32):
      %3 = arith.mulf %1, %2 : f32
      spyre.loop.yield %3 : f32
    }
    %4 = spyre.loop.nest [d0 = 2, d1 = 64] ins(%0[d0, d1] : tensor<2x64xf32>, %b[d1] : tensor<64xf32>) -> [d0, d1] : tensor<2x64xf32> {
    ^bb0(%5: f32, %6: f32):
      %7 = arith.addf %5, %6 : f32
      spyre.loop.yield %7 : f32
    }
    %8 = spyre.loop.nest [d0 = 2, d1 = 64] ins(%4[d0, d1] : tensor<2x64xf32>) -> [d0, d1] : tensor<2x64xf32> {
    ^bb0(%9: f32):
      %10 = spyre.loop.apply "relu"(%9) : (f32) -> f32
      spyre.loop.yield %10 : f32
    }
    func.return %8 : tensor<2x64xf32>
  }
}
