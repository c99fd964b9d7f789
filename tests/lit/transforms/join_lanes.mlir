// RUN: spyre-opt -p join-lanes %s | filecheck %s

// Two neighbours share a factor: a table with the factors of both is made once, for all heads.

// CHECK:      %[[BOTH:.*]] = spyre.loop.nest [t = 256, p = 32, i = 2] ins(%cos[t, p] : tensor<256x32xf16>) -> [t, p * 2 + i] : tensor<256x64xf16>
// CHECK:      spyre.loop.nest [h = 16, t = 256, p = 64] ins(%x[h, t, p] : tensor<16x256x64xf16>, %[[BOTH]][t, p] : tensor<256x64xf16>) -> [h, t, p] : tensor<16x256x64xf16>
func.func @main(%x: tensor<16x256x64xf16>, %cos: tensor<256x32xf16>) -> tensor<16x256x64xf16> {
  %y = spyre.loop.nest [h = 16, t = 256, p = 32, i = 2] ins(%x[h, t, p * 2 + i] : tensor<16x256x64xf16>, %cos[t, p] : tensor<256x32xf16>) -> [h, t, p * 2 + i] : tensor<16x256x64xf16> {
  ^bb0(%a: f16, %b: f16):
    %m = arith.mulf %a, %b : f16
    spyre.loop.yield %m : f16
  }
  func.return %y : tensor<16x256x64xf16>
}
