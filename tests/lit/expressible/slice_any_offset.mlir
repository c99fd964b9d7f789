// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// A slice from lane 5 on, over the end of a stick.
// Cost: 1 SuperDSC.

func.func @main(%x: tensor<4x130xf32>) -> tensor<4x65xf32> {
  %1 = aten.slice.Tensor(%x) {dim = 1 : i64, start = 5 : i64, end = 70 : i64} : (tensor<4x130xf32>) -> tensor<4x65xf32>
  %0 = aten.exp(%1) : (tensor<4x65xf32>) -> tensor<4x65xf32>
  func.return %0 : tensor<4x65xf32>
}

// CHECK: spyre.kernel.compute "exp" [d0 = 4, d1 = 65]
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}

// COST: {{^}}1{{$}}
