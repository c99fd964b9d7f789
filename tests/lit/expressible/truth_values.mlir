// RUN: spyre-opt -p decompose-aten %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Comparisons of truth values are choices: arith compares numbers only. Cost: 1 SDSC for <, 2 for =.

func.func @main(%x: tensor<4x8xi1>, %y: tensor<4x8xi1>) -> (tensor<4x8xi1>, tensor<4x8xi1>) {
  %0 = aten.lt.Tensor(%x, %y) : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  %1 = aten.eq.Tensor(%x, %y) : (tensor<4x8xi1>, tensor<4x8xi1>) -> tensor<4x8xi1>
  func.return %0, %1 : tensor<4x8xi1>, tensor<4x8xi1>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<4x8xi1>, %[[Y:.*]]: tensor<4x8xi1>)
// CHECK-NEXT: %[[LT:.*]] = aten.where.self(%[[X]], %[[Y]]) {self = false}
// CHECK-NEXT: %[[NOT:.*]] = aten.where.self(%[[Y]]) {self = false, other = true}
// CHECK-NEXT: %[[EQ:.*]] = aten.where.self(%[[X]], %[[Y]], %[[NOT]])
// CHECK-NEXT: func.return %[[LT]], %[[EQ]]

// COST: {{^}}3{{$}}
