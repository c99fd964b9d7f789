// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// The elements of the stick in reverse order: selected by their places, and folded.
// Cost: 4 SuperDSCs.

func.func @main(%x: tensor<4x70xf32>) -> tensor<4x70xf32> {
  %0 = aten.flip(%x) {dims = array<i64: 1>} : (tensor<4x70xf32>) -> tensor<4x70xf32>
  func.return %0 : tensor<4x70xf32>
}

// CHECK: spyre.kernel.compute "equal" [d0 = 70, d1 = 70]
// CHECK: spyre.kernel.compute "where3" [d0 = 4, d1 = 70, d2 = 70]
// CHECK: spyre.kernel.compute "sum" [d0 = 4, d1 = 70, r = 70]
// CHECK: spyre.kernel.compute "identity" [d0 = 4, d1 = 70]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}

// COST: {{^}}4{{$}}
