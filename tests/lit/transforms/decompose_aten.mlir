// RUN: spyre-opt -p decompose-aten %s | filecheck %s

// A softmax becomes five ops; one that has a lowering of its own stays.

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = aten.softmax.int(%x) {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = aten.exp(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[MAX:.*]] = aten.amax(%[[X]]) {dim = array<i64: -1>, keepdim = true} wide
// CHECK-NEXT: %[[SHIFTED:.*]] = aten.sub.Tensor(%[[X]], %[[MAX]])
// CHECK-NEXT: %[[E:.*]] = aten.exp(%[[SHIFTED]])
// CHECK-NEXT: %[[SUM:.*]] = aten.sum.dim_IntList(%[[E]]) {dim = array<i64: -1>, keepdim = true} wide
// CHECK-NEXT: %[[Q:.*]] = aten.div.Tensor(%[[E]], %[[SUM]])
// CHECK-NEXT: %[[OUT:.*]] = aten.exp(%[[Q]])
// CHECK-NEXT: func.return %[[OUT]]

// RUN: spyre-opt -p "decompose-aten{name-operators=true}" --print-debuginfo %s | filecheck %s --check-prefix=NAMED

// Locations name the operator of the model if that is asked for.

// NAMED: aten.amax({{.*}} loc("@aten.softmax.int"(
// NAMED: aten.div.Tensor({{.*}} loc("@aten.softmax.int"(
// NAMED: aten.exp({{.*}} loc("@aten.exp"(
