// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop %s | filecheck %s

// The row that a roll brings to the end is overwritten: no nest writes it.

func.func @rolled(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = aten.roll(%x) {shifts = array<i64: -1>, dims = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = aten.select_scatter(%0, %y) {dim = 0 : i64, index = 3 : i64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}

// CHECK:      func.func @rolled(%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[E:.*]] = spyre.loop.empty : tensor<3x8xf32>
// CHECK-NEXT: %[[UP:.*]] = spyre.loop.nest [d0 = 3, d1 = 8] ins(%[[X]][d0 + 1, d1] : tensor<4x8xf32>) into %[[E]] -> [d0, d1]
// CHECK:      %[[F:.*]] = spyre.loop.empty : tensor<4x8xf32>
// CHECK-NEXT: %[[KEPT:.*]] = spyre.loop.nest [d0 = 3, d1 = 8] ins(%[[UP]][d0, d1] : tensor<3x8xf32>) into %[[F]] -> [d0, d1]
