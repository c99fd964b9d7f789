// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Elements picked along a dimension: nothing on the device reads by computed addresses, so the indices are compared with
// all places.
// Cost: 5 SuperDSCs.

func.func @main(%x: tensor<5x70xf32>, %i: tensor<5x3xi64>) -> tensor<5x3xf32> {
  %0 = aten.gather(%x, %i) {dim = 1 : i64} : (tensor<5x70xf32>, tensor<5x3xi64>) -> tensor<5x3xf32>
  func.return %0 : tensor<5x3xf32>
}

// CHECK: spyre.kernel.compute "equal" [d0 = 5, d1 = 3, d2 = 70]
// CHECK: spyre.kernel.compute "where3" [d0 = 5, d1 = 3, d2 = 70]
// CHECK: spyre.kernel.compute "sum" [d0 = 5, d1 = 3, r = 70]
// CHECK: spyre.kernel.compute "sum" [d0 = 5, d1 = 3, r = 70]
// CHECK: spyre.kernel.compute "realdiv" [d0 = 5, d1 = 3]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}

// COST: {{^}}5{{$}}
