// RUN: not spyre-opt -p convert-aten-to-spyre-loop %s 2>&1 | filecheck %s

// Everything that has no lowering is listed at once, with how often and where it comes first.

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = aten.softmax.int(%x) {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = aten.call "aten.cosh"(%0) {self = #aten.operands<1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = aten.call "aten.cosh"(%1) {self = #aten.operands<1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %2 : tensor<4x8xf32>
}

// CHECK: error: [SPY-U001] 2 operations lack a lowering (3 nodes):
// CHECK-NEXT: aten.cosh x2, first at {{.*}}:7
// CHECK-NEXT: aten.softmax.int x1, first at {{.*}}:6
// CHECK: try: run decompose-aten first, or declare them in the op table
