// RUN: spyre-opt -p decompose-aten %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// The position of the largest element: the largest, who equals it, positions there and a number behind all elsewhere,
// the smallest. What is not a number wins: the largest is none then, and equals nothing. Cost: 7 SDSCs for a row in the
// lanes, the last one a copy of what the host reads.

func.func @main(%x: tensor<4x65xf32>) -> tensor<4xi64> {
  %0 = aten.argmax(%x) {dim = 1 : i64} : (tensor<4x65xf32>) -> tensor<4xi64>
  func.return %0 : tensor<4xi64>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<4x65xf32>)
// CHECK-NEXT: %[[BEST:.*]] = aten.amax(%[[X]]) {dim = array<i64: 1>, keepdim = true} wide
// CHECK-NEXT: %[[SAME:.*]] = aten.eq.Tensor(%[[X]], %[[BEST]])
// CHECK-NEXT: %[[NAN:.*]] = aten.ne.Tensor(%[[X]], %[[X]])
// CHECK-NEXT: %[[HIT:.*]] = aten.where.self(%[[SAME]], %[[NAN]]) {self = true}
// CHECK:      aten.arange.start_step()
// CHECK:      %[[FOUND:.*]] = aten.where.self(%[[HIT]]
// CHECK-NEXT: %[[OUT:.*]] = aten.amin(%[[FOUND]]) {dim = array<i64: 1>
// CHECK-NEXT: func.return %[[OUT]] : tensor<4xi64>

// COST: {{^}}7{{$}}
