// RUN: spyre-opt -p convert-aten-to-spyre-loop %s | filecheck %s

// A transposed operand is a map, no op; a number is a constant; the sum over columns is a nest of its own;
// its result is a base tensor of another rank, so the function returns a copy.

func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) -> tensor<4xf32> {
  %0 = aten.permute(%y) {dims = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = aten.mul.Tensor(%x, %0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = aten.maximum(%1) {other = 0.5 : f64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = aten.sum.dim_IntList(%2) {dim = array<i64: 1>, keepdim = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %4 = aten.squeeze.dim(%3) {dim = array<i64: 1>} : (tensor<4x1xf32>) -> tensor<4xf32>
  func.return %4 : tensor<4xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<8x4xf32>)
// CHECK-NEXT: %[[P:.*]] = spyre.loop.nest [d0 = 4, d1 = 8] ins(%[[X]][d0, d1] : tensor<4x8xf32>, %[[Y]][d1, d0] : tensor<8x4xf32>) -> [d0, d1] : tensor<4x8xf32> {
// CHECK:        arith.mulf
// CHECK:      %[[C:.*]] = spyre.loop.constant 5.000000e-01 : f64 : tensor<f32>
// CHECK-NEXT: %[[M:.*]] = spyre.loop.nest [d0 = 4, d1 = 8] ins(%[[P]][d0, d1] : tensor<4x8xf32>, %[[C]][] : tensor<f32>) -> [d0, d1]
// CHECK:        arith.maximumf
// CHECK:      %[[S:.*]] = spyre.loop.nest [d0 = 4, r = 8] ins(%[[M]][d0, r] : tensor<4x8xf32>) -> [d0, 0] : tensor<4x1xf32> reduce "arith.addf" {
// CHECK:      %[[OUT:.*]] = spyre.loop.nest [d0 = 4] ins(%[[S]][d0, 0] : tensor<4x1xf32>) -> [d0] : tensor<4xf32> {
// CHECK:      func.return %[[OUT]]
