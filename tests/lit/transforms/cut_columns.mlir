// RUN: spyre-opt -p cut-columns %s | filecheck %s

// 769 sticks of columns are a prime number, and no core reaches the whole weight: 768 sticks are 24 for each of 32 cores,
// and three columns are left.
func.func @main(%x: tensor<4x4096xf16>, %w: tensor<49155x4096xf16> {aten.kind = "parameter"}) -> (tensor<4x49155xf16> {aten.layout = "default"}) {
  %0 = spyre.loop.nest [m = 4, n = 49155, k = 4096] ins(%x[m, k] : tensor<4x4096xf16>, %w[n, k] : tensor<49155x4096xf16>) -> [m, n] : tensor<4x49155xf16> reduce "arith.addf" {
  ^bb0(%a: f16, %b: f16):
    %c = arith.mulf %a, %b : f16
    spyre.loop.yield %c : f16
  }
  func.return %0 : tensor<4x49155xf16>
}

// CHECK:      func.func @main
// CHECK-NEXT: %[[E:.*]] = spyre.loop.empty : tensor<4x49155xf16>
// CHECK-NEXT: %[[A:.*]] = spyre.loop.nest [m = 4, n = 49152, k = 4096] ins(%x[m, k] : tensor<4x4096xf16>, %w[n, k] : tensor<49155x4096xf16>) into %[[E]] -> [m, n]
// CHECK:      %[[B:.*]] = spyre.loop.nest [m = 4, n = 3, k = 4096] ins(%x[m, k] : tensor<4x4096xf16>, %w[n + 49152, k] : tensor<49155x4096xf16>) into %[[A]] -> [m, n + 49152]
// CHECK:      func.return %[[B]]

// A result that may lie as it likes gets longer instead.
// CHECK:      func.func @free
// CHECK-NEXT: spyre.loop.nest [m = 4, n = 49155, k = 4096]
func.func @free(%x: tensor<4x4096xf16>, %w: tensor<49155x4096xf16> {aten.kind = "parameter"}) -> tensor<4x49155xf16> {
  %0 = spyre.loop.nest [m = 4, n = 49155, k = 4096] ins(%x[m, k] : tensor<4x4096xf16>, %w[n, k] : tensor<49155x4096xf16>) -> [m, n] : tensor<4x49155xf16> reduce "arith.addf" {
  ^bb0(%a: f16, %b: f16):
    %c = arith.mulf %a, %b : f16
    spyre.loop.yield %c : f16
  }
  func.return %0 : tensor<4x49155xf16>
}

// 25 sticks of columns have no slices for more than one core beside all rows, so that 32 cores would read the whole part
// of the weight: 16 sticks are four for each of four cores beside eight that divide rows.
// CHECK:      func.func @keys
// CHECK:      %[[C:.*]] = spyre.loop.nest [m = 64, n = 1024, k = 1600] ins(%x[m, k] : tensor<64x1600xf16>, %w[n + 1600, k] : tensor<4800x1600xf16>) into %{{.*}} -> [m, n]
// CHECK:      spyre.loop.nest [m = 64, n = 576, k = 1600] ins(%x[m, k] : tensor<64x1600xf16>, %w[n + 2624, k] : tensor<4800x1600xf16>) into %[[C]] -> [m, n + 1024]
func.func @keys(%x: tensor<64x1600xf16>, %w: tensor<4800x1600xf16> {aten.kind = "parameter"}) -> tensor<64x1600xf16> {
  %0 = spyre.loop.nest [m = 64, n = 1600, k = 1600] ins(%x[m, k] : tensor<64x1600xf16>, %w[n + 1600, k] : tensor<4800x1600xf16>) -> [m, n] : tensor<64x1600xf16> reduce "arith.addf" {
  ^bb0(%a: f16, %b: f16):
    %c = arith.mulf %a, %b : f16
    spyre.loop.yield %c : f16
  }
  func.return %0 : tensor<64x1600xf16>
}
