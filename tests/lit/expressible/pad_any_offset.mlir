// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// A border of three elements in front of the first lane.
// Cost: 3 SuperDSCs.

func.func @main(%x: tensor<4x70xf32>) -> tensor<4x75xf32> {
  %0 = aten.constant_pad_nd(%x) {pad = array<i64: 3, 2>, value = 0.5} : (tensor<4x70xf32>) -> tensor<4x75xf32>
  func.return %0 : tensor<4x75xf32>
}

// CHECK: spyre.kernel.compute "identity" [d0 = 4, d1 = 3]
// CHECK: spyre.kernel.compute "identity" [d0 = 4, d1 = 70]
// CHECK: spyre.kernel.compute "identity" [d0 = 4, d1 = 2]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}

// COST: {{^}}3{{$}}
