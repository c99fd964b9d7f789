// RUN: spyre-opt -p pad-rows %s | filecheck %s

// No number of cores divides 257 rows. Some of a tensor that nests fill, and of a weight, which are copied with zeros
// behind them, are appended instead, and follow from these through norms and a product. What reads all rows in the end
// reads the 257 that there were.
!t = tensor<257x512xf16>
!s = tensor<257x1xf16>
func.func @main(%x: tensor<256x512xf16> {aten.name = "x", aten.kind = "input"}, %p: !t {aten.name = "p", aten.kind = "parameter"}, %w: tensor<512x512xf16> {aten.name = "w", aten.kind = "parameter"}) -> tensor<512xf16> {
  %0 = spyre.loop.empty : !t
  %1 = spyre.loop.nest [m = 256, n = 512] ins(%x[m, n] : tensor<256x512xf16>) into %0 -> [m + 1, n] : !t {
  ^bb0(%a1: f16):
    spyre.loop.yield %a1 : f16
  }
  %2 = spyre.loop.nest [n = 512] ins(%w[0, n] : tensor<512x512xf16>) into %1 -> [0, n] : !t {
  ^bb0(%a2: f16):
    spyre.loop.yield %a2 : f16
  }
  %3 = spyre.loop.nest [m = 257, n = 512] ins(%2[m, n] : !t, %p[m, n] : !t) -> [m, n] : !t {
  ^bb0(%a3: f16, %b3: f16):
    %c3 = arith.addf %a3, %b3 : f16
    spyre.loop.yield %c3 : f16
  }
  %4 = spyre.loop.nest [m = 257, r = 512] ins(%3[m, r] : !t) -> [m, 0] : !s reduce "arith.addf" {
  ^bb0(%a4: f16):
    spyre.loop.yield %a4 : f16
  }
  %5 = spyre.loop.nest [m = 257, n = 512] ins(%3[m, n] : !t, %4[m, 0] : !s) -> [m, n] : !t {
  ^bb0(%a5: f16, %b5: f16):
    %c5 = arith.subf %a5, %b5 : f16
    spyre.loop.yield %c5 : f16
  }
  %6 = spyre.loop.nest [m = 257, n = 512, k = 512] ins(%5[m, k] : !t, %w[n, k] : tensor<512x512xf16>) -> [m, n] : !t reduce "arith.addf" {
  ^bb0(%a6: f16, %b6: f16):
    %c6 = arith.mulf %a6, %b6 : f16
    spyre.loop.yield %c6 : f16
  }
  %7 = spyre.loop.nest [m = 257, r = 512] ins(%6[m, r] : !t) -> [m, 0] : !s reduce "arith.addf" {
  ^bb0(%a7: f16):
    spyre.loop.yield %a7 : f16
  }
  %8 = spyre.loop.nest [m = 257, n = 512] ins(%6[m, n] : !t, %7[m, 0] : !s) -> [m, n] : !t {
  ^bb0(%a8: f16, %b8: f16):
    %c8 = arith.subf %a8, %b8 : f16
    spyre.loop.yield %c8 : f16
  }
  %9 = spyre.loop.nest [n = 512, r = 257] ins(%8[r, n] : !t) -> [n] : tensor<512xf16> reduce "arith.maximumf" {
  ^bb0(%a9: f16):
    spyre.loop.yield %a9 : f16
  }
  func.return %9 : tensor<512xf16>
}

// CHECK:      %[[PARTS:.*]] = spyre.loop.empty : tensor<288x512xf16>
// CHECK:      spyre.loop.nest [m = 256, n = 512] {{.*}} into %[[PARTS]] -> [m + 1, n]
// CHECK:      %[[FILLED:.*]] = spyre.loop.nest [n = 512] {{.*}} -> [0, n] : tensor<288x512xf16>
// CHECK:      %[[ZERO:.*]] = spyre.loop.constant 0.000000e+00
// CHECK-NEXT: %[[X:.*]] = spyre.loop.nest [d0 = 31, d1 = 512] ins(%[[ZERO]][] : tensor<f16>) into %[[FILLED]] -> [d0 + 257, d1]
// CHECK:      %[[COPY:.*]] = spyre.loop.nest [d0 = 257, d1 = 512] ins(%p[d0, d1] : tensor<257x512xf16>) into
// CHECK:      %[[P:.*]] = spyre.loop.nest [d0 = 31, d1 = 512] {{.*}} into %[[COPY]] -> [d0 + 257, d1]
// CHECK:      spyre.loop.nest [m = 288, n = 512] ins(%[[X]][m, n] : tensor<288x512xf16>, %[[P]][m, n] : tensor<288x512xf16>)
// CHECK:      spyre.loop.nest [m = 288, r = 512] {{.*}} -> [m, 0] : tensor<288x1xf16>
// CHECK:      spyre.loop.nest [m = 288, n = 512, k = 512]
// CHECK:      spyre.loop.nest [m = 288, r = 512]
// CHECK:      %[[LAST:.*]] = spyre.loop.nest [m = 288, n = 512]
// CHECK:      spyre.loop.nest [n = 512, r = 257] ins(%[[LAST]][r, n] : tensor<288x512xf16>)
