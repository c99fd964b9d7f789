// RUN: spyre-opt -p decompose-aten %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Bits by arithmetic: a mask of low bits is a remainder by a power of two, a shift is a product or a floored quotient.
// Cost: 1 SDSC for a left shift, 8 for a mask.

func.func @left(%x: tensor<4x8xi64>) -> tensor<4x8xi64> {
  %0 = aten.__lshift__.Scalar(%x) {other = 2 : i64} : (tensor<4x8xi64>) -> tensor<4x8xi64>
  func.return %0 : tensor<4x8xi64>
}

// CHECK:      func.func @left(%[[X:.*]]: tensor<4x8xi64>)
// CHECK-NEXT: %[[OUT:.*]] = aten.mul.Tensor(%[[X]]) {other = 4 : i64}
// CHECK-NEXT: func.return %[[OUT]]

func.func @mask(%x: tensor<4x8xi64>) -> tensor<4x8xi64> {
  %0 = aten.bitwise_and.Scalar(%x) {other = 7 : i64} : (tensor<4x8xi64>) -> tensor<4x8xi64>
  func.return %0 : tensor<4x8xi64>
}

// CHECK:      func.func @mask(%[[X:.*]]: tensor<4x8xi64>)
// CHECK-NOT:  bitwise
// CHECK:      aten.mul.Tensor(%{{.*}}) {other = 8 : i64}
// CHECK:      func.return

// COST: {{^}}9{{$}}
