// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Rows of a table, both from the host: one SuperDSC, whatever the number of rows. Negative indices are counted from the
// end as they are sent.
// Cost: 1 SuperDSC.

func.func @main(%table: tensor<100x80xf32>, %i: tensor<40xi64>) -> tensor<40x80xf32> {
  %0 = aten.index_select(%table, %i) {dim = 0 : i64} : (tensor<100x80xf32>, tensor<40xi64>) -> tensor<40x80xf32>
  func.return %0 : tensor<40x80xf32>
}

// CHECK: spyre.kernel.gather
// CHECK-NOT: spyre.kernel.{{compute|restickify|gather|convert}}

// COST: {{^}}1{{$}}
