// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Parts side by side along the stick, the second from lane 6 on.
// Cost: 2 SuperDSCs.

func.func @main(%a: tensor<4x70xf32>, %b: tensor<4x66xf32>) -> tensor<4x136xf32> {
  %0 = aten.cat(%a, %b) {dim = 1 : i64} : (tensor<4x70xf32>, tensor<4x66xf32>) -> tensor<4x136xf32>
  func.return %0 : tensor<4x136xf32>
}

// CHECK: spyre.kernel.compute "identity" [d0 = 4, d1 = 70]
// CHECK: spyre.kernel.compute "identity" [d0 = 4, d1 = 66]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}

// COST: {{^}}2{{$}}
