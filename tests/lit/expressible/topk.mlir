// RUN: spyre-opt -p decompose-aten %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// An element's rank is how many go before it, by value and, of equals, by position; what stands at place r is the sum
// over those of rank r, which is one. Cost: 15 SDSCs for the values,
// and 4 for their places if somebody reads them; the length changes neither by more than a few copies.

func.func @main(%x: tensor<3x65xf32>) -> tensor<3x2xf32> {
  %0, %1 = aten.topk(%x) {k = 2 : i64} : (tensor<3x65xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  func.return %0 : tensor<3x2xf32>
}

func.func @places(%x: tensor<3x65xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>) {
  %0, %1 = aten.topk(%x) {k = 2 : i64} : (tensor<3x65xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  func.return %0, %1 : tensor<3x2xf32>, tensor<3x2xi64>
}

// CHECK:      %[[EARLIER:.*]] = aten.lt.Tensor(
// CHECK:      %[[LEVEL:.*]] = aten.ge.Tensor(%[[OTHER:.*]], %[[OWN:.*]]) :
// CHECK-NEXT: %[[AHEAD:.*]] = aten.gt.Tensor(%[[OTHER]], %[[OWN]])
// CHECK-NEXT: %[[BEFORE:.*]] = aten.where.self(%[[EARLIER]], %[[LEVEL]], %[[AHEAD]])
// CHECK:      %[[RANK:.*]] = aten.sum.dim_IntList(
// CHECK:      %[[HIT:.*]] = aten.eq.Tensor(
// CHECK:      %[[TERMS:.*]] = aten.where.self(%[[HIT]]
// CHECK:      %[[OUT:.*]] = aten.sum.dim_IntList(%[[TERMS]])
// CHECK-NEXT: func.return %[[OUT]] : tensor<3x2xf32>

// COST: {{^}}34{{$}}
