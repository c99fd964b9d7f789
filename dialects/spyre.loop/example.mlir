// relu(x @ w + b)
// Written by `tools/generate.py` from `examples/affine_relu.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  func.func @main(%x: tensor<2x64xf16>, %w: tensor<64x64xf16>, %b: tensor<64xf16>) -> tensor<2x64xf16> {
    %0 = spyre.loop.nest [m = 2, n = 64, k = 64] ins(%x[m, k] : tensor<2x64xf16>, %w[k, n] : tensor<64x64xf16>) -> [m, n] : tensor<2x64xf16> reduce "arith.addf" {
    ^bb0(%1: f16, %2: f16):
      %3 = arith.mulf %1, %2 : f16
      spyre.loop.yield %3 : f16
    }
    %4 = spyre.loop.nest [d0 = 2, d1 = 64] ins(%0[d0, d1] : tensor<2x64xf16>, %b[d1] : tensor<64xf16>) -> [d0, d1] : tensor<2x64xf16> {
    ^bb0(%5: f16, %6: f16):
      %7 = arith.addf %5, %6 : f16
      spyre.loop.yield %7 : f16
    }
    %8 = spyre.loop.nest [d0 = 2, d1 = 64] ins(%4[d0, d1] : tensor<2x64xf16>) -> [d0, d1] : tensor<2x64xf16> {
    ^bb0(%9: f16):
      %10 = spyre.loop.apply "relu"(%9) : (f16) -> f16
      spyre.loop.yield %10 : f16
    }
    func.return %8 : tensor<2x64xf16>
  }
}
