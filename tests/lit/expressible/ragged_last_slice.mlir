// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel,divide-work %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// 67 rows do not split into equal slices over 32 cores: the rows stay whole and the columns are cut, or fewer cores work.
// A sum along the ragged dimension masks the padding of its last stick.
// Element by element, the other dimension goes into the sticks and the columns over all cores.
// Cost: 3 SuperDSCs for the sum, 1 element by element.

func.func @main(%x: tensor<67x130xf32>) -> tensor<67xf32> {
  %1 = aten.exp(%x) : (tensor<67x130xf32>) -> tensor<67x130xf32>
  %0 = aten.sum.dim_IntList(%1) {dim = array<i64: 1>} : (tensor<67x130xf32>) -> tensor<67xf32>
  func.return %0 : tensor<67xf32>
}

func.func @every(%x: tensor<67x256xf32>) -> tensor<67x256xf32> {
  %0 = aten.exp(%x) : (tensor<67x256xf32>) -> tensor<67x256xf32>
  func.return %0 : tensor<67x256xf32>
}

// CHECK: spyre.kernel.compute "exp" [d0 = 67, d1 = 130 over 26]
// CHECK: spyre.kernel.compute "sum" [d0 = 67 over 2, r = 130]
// CHECK: spyre.kernel.compute "identity" [d0 = 67 over 2]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}
// CHECK-LABEL: func.func @every
// CHECK: spyre.kernel.compute "exp" [d0 = 67, d1 = 256 over 32] ins({{.*}}order [0, 1], stick 0

// COST: {{^}}4{{$}}
