// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel,divide-work %s | filecheck %s

// 67 rows do not split into equal slices over 32 cores: the rows stay whole and the columns are cut, or fewer cores work.
// A sum along the ragged dimension masks the padding of its last stick.
// Cost: 3 SuperDSCs.

func.func @main(%x: tensor<67x130xf32>) -> tensor<67xf32> {
  %1 = aten.exp(%x) : (tensor<67x130xf32>) -> tensor<67x130xf32>
  %0 = aten.sum.dim_IntList(%1) {dim = array<i64: 1>} : (tensor<67x130xf32>) -> tensor<67xf32>
  func.return %0 : tensor<67xf32>
}

// CHECK: spyre.kernel.compute "exp" [d0 = 67, d1 = 130 over 26]
// CHECK: spyre.kernel.compute "sum" [d0 = 67 over 2, r = 130]
// CHECK: spyre.kernel.compute "identity" [d0 = 67 over 2]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}
