// RUN: spyre-opt -p decompose-aten %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// e^x - 1 without a difference that cancels: tanh(x/2) (e^x + 1). Cost: 5 SDSCs.

func.func @main(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %0 = aten.expm1(%x) : (tensor<4x8xf16>) -> tensor<4x8xf16>
  func.return %0 : tensor<4x8xf16>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<4x8xf16>)
// CHECK-NEXT: %[[HALF:.*]] = aten.mul.Tensor(%[[X]]) {other = 5.000000e-01 : f64}
// CHECK-NEXT: %[[TANH:.*]] = aten.tanh(%[[HALF]])
// CHECK-NEXT: %[[E:.*]] = aten.exp(%[[X]])
// CHECK-NEXT: %[[PLUS:.*]] = aten.add.Tensor(%[[E]]) {other = 1.000000e+00 : f64}
// CHECK-NEXT: %[[OUT:.*]] = aten.mul.Tensor(%[[TANH]], %[[PLUS]])
// CHECK-NEXT: func.return %[[OUT]]

// COST: {{^}}5{{$}}
