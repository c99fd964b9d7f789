// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// A scatter in which an index may come twice: of several elements for one place the last stays.
// Cost: 9 SuperDSCs.

func.func @main(%x: tensor<5x7xf32>, %i: tensor<3x7xi64>, %s: tensor<3x7xf32>) -> tensor<5x7xf32> {
  %0 = aten.scatter.src(%x, %i, %s) {dim = 0 : i64} : (tensor<5x7xf32>, tensor<3x7xi64>, tensor<3x7xf32>) -> tensor<5x7xf32>
  func.return %0 : tensor<5x7xf32>
}

// CHECK: spyre.kernel.compute "equal" [d0 = 7, d1 = 3, d2 = 5]
// CHECK: spyre.kernel.compute "where3" [d0 = 7, d1 = 3, d2 = 5]
// CHECK: spyre.kernel.compute "max" [d0 = 7, r = 3, d2 = 5]
// CHECK: spyre.kernel.compute "equal" [d0 = 7, d1 = 3, d2 = 5]
// CHECK: spyre.kernel.compute "greaterthan" [d0 = 7, d1 = 5]
// CHECK: spyre.kernel.compute "where3" [d0 = 7, d1 = 3, d2 = 5]
// CHECK: spyre.kernel.compute "sum" [d0 = 7, r = 3, d2 = 5]
// CHECK: spyre.kernel.compute "where3" [d0 = 7, d1 = 5]
// CHECK: spyre.kernel.compute "identity" [d0 = 5, d1 = 7]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}

// COST: {{^}}9{{$}}
