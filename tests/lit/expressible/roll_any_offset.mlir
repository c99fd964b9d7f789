// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// The elements of the stick moved on by three: two parts that change places.
// Cost: 2 SuperDSCs.

func.func @main(%x: tensor<4x70xf32>) -> tensor<4x70xf32> {
  %0 = aten.roll(%x) {shifts = array<i64: 3>, dims = array<i64: 1>} : (tensor<4x70xf32>) -> tensor<4x70xf32>
  func.return %0 : tensor<4x70xf32>
}

// CHECK: spyre.kernel.compute "identity" [d0 = 4, d1 = 3]
// CHECK: spyre.kernel.compute "identity" [d0 = 4, d1 = 67]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}

// COST: {{^}}2{{$}}
