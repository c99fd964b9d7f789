// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Rows of a table by a part of an index tensor that starts inside a stick: the part is compared with the row numbers, and
// the table multiplied with the matrix of hits.
// Cost: 7 SuperDSCs.

func.func @main(%table: tensor<5x64xf32>, %i: tensor<7xi64>) -> tensor<4x64xf32> {
  %0 = aten.slice.Tensor(%i) {dim = 0 : i64, start = 3 : i64, end = 7 : i64} : (tensor<7xi64>) -> tensor<4xi64>
  %1 = aten.embedding(%table, %0) : (tensor<5x64xf32>, tensor<4xi64>) -> tensor<4x64xf32>
  func.return %1 : tensor<4x64xf32>
}

// CHECK-NOT: kernel.host
// CHECK: spyre.kernel.compute "equal" [d0 = 4, d1 = 5]
// CHECK: spyre.kernel.compute "batchmatmul"
// CHECK-NOT: kernel.host

// COST: {{^}}7{{$}}
