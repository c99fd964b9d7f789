// RUN: spyre-opt -p decompose-aten %s | filecheck %s

// Bits by arithmetic: a mask of low bits is a remainder by a power of two, a shift is a product or a floored quotient.
// Cost: 1 SDSC for a left shift, and, conversions of the element type aside, 2 for a right shift and 4 for the mask.

func.func @left(%x: tensor<4x8xi64>) -> tensor<4x8xi64> {
  %0 = aten.__lshift__.Scalar(%x) {other = 2 : i64} : (tensor<4x8xi64>) -> tensor<4x8xi64>
  func.return %0 : tensor<4x8xi64>
}

// CHECK:      func.func @left(%[[X:.*]]: tensor<4x8xi64>)
// CHECK-NEXT: %[[OUT:.*]] = aten.mul.Tensor(%[[X]]) {other = 4 : i64}
// CHECK-NEXT: func.return %[[OUT]]

func.func @right(%x: tensor<4x8xi64>) -> tensor<4x8xi64> {
  %0 = aten.__rshift__.Scalar(%x) {other = 2 : i64} : (tensor<4x8xi64>) -> tensor<4x8xi64>
  func.return %0 : tensor<4x8xi64>
}

// CHECK:      func.func @right(%[[X:.*]]: tensor<4x8xi64>)
// CHECK-NEXT: %[[F:.*]] = aten._to_copy(%[[X]]) {dtype = f32}
// CHECK-NEXT: %[[Q:.*]] = aten.mul.Tensor(%[[F]]) {other = 2.500000e-01 : f64}
// CHECK-NEXT: %[[FLOOR:.*]] = aten.floor(%[[Q]])
// CHECK-NEXT: %[[OUT:.*]] = aten._to_copy(%[[FLOOR]]) {dtype = i64}
// CHECK-NEXT: func.return %[[OUT]]

func.func @mask(%x: tensor<4x8xi64>) -> tensor<4x8xi64> {
  %0 = aten.bitwise_and.Scalar(%x) {other = 7 : i64} : (tensor<4x8xi64>) -> tensor<4x8xi64>
  func.return %0 : tensor<4x8xi64>
}

// CHECK:      func.func @mask(%[[X:.*]]: tensor<4x8xi64>)
// CHECK:      %[[Q:.*]] = aten._to_copy(%{{.*}}) {dtype = i64}
// CHECK-NEXT: %[[P:.*]] = aten.mul.Tensor(%[[Q]]) {other = 8 : i64}
// CHECK-NEXT: %[[OUT:.*]] = aten.sub.Tensor(%[[X]], %[[P]])
// CHECK-NEXT: func.return %[[OUT]]
