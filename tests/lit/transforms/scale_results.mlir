// RUN: spyre-opt -p scale-results %s | filecheck %s

// The scale of a row of the weight is one of a column of the result; the weight goes to the product as it is converted.

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[WIDE:%.*]] = spyre.loop.nest [d0 = 256, d1 = 128] ins(%weight[d0, d1] : tensor<256x128xf8E4M3FN>) -> [d0, d1] : tensor<256x128xf16>
// CHECK: [[SUM:%.*]] = spyre.loop.nest [m = 4, n = 256, k = 128] ins(%x[m, k] : tensor<4x128xf16>, [[WIDE]][n, k] : tensor<256x128xf16>) -> [m, n] : tensor<4x256xf16> reduce "arith.addf"
// CHECK: [[SCALE:%.*]] = spyre.loop.nest [d0 = 256, d1 = 1] ins(%scale[d0, d1] : tensor<256x1xf32>) -> [d0, d1] : tensor<256x1xf16>
// CHECK: [[RESULT:%.*]] = spyre.loop.nest [m = 4, n = 256] ins([[SUM]][m, n] : tensor<4x256xf16>, [[SCALE]][n, 0] : tensor<256x1xf16>) -> [m, n] : tensor<4x256xf16>
// CHECK: func.return [[RESULT]]
func.func @main(%x: tensor<4x128xf16>, %weight: tensor<256x128xf8E4M3FN>, %scale: tensor<256x1xf32>) -> tensor<4x256xf16> {
  %0 = spyre.loop.nest [a = 256, b = 128] ins(%weight[a, b] : tensor<256x128xf8E4M3FN>) -> [a, b] : tensor<256x128xf32> wide {
  ^bb0(%p : f8E4M3FN):
    spyre.loop.yield %p : f8E4M3FN
  }
  %1 = spyre.loop.nest [a = 128, b = 256] ins(%0[b, a] : tensor<256x128xf32>, %scale[b, 0] : tensor<256x1xf32>) -> [a, b] : tensor<128x256xf32> wide {
  ^bb0(%p : f32, %q : f32):
    %s = arith.mulf %p, %q : f32
    spyre.loop.yield %s : f32
  }
  %2 = spyre.loop.nest [a = 128, b = 256] ins(%1[a, b] : tensor<128x256xf32>) -> [a, b] : tensor<128x256xf16> {
  ^bb0(%p : f32):
    spyre.loop.yield %p : f32
  }
  %3 = spyre.loop.nest [m = 4, n = 256, k = 128] ins(%x[m, k] : tensor<4x128xf16>, %2[k, n] : tensor<128x256xf16>) -> [m, n] : tensor<4x256xf16> reduce "arith.addf" {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  func.return %3 : tensor<4x256xf16>
}
