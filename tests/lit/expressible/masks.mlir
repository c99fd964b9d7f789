// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// A triangle is a comparison of row with column numbers, two vectors that the host provides, and a choice.
// Cost: 2 SDSCs.

func.func @tril(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %0 = aten.tril(%x) {diagonal = 0 : i64} : (tensor<8x128xf32>) -> tensor<8x128xf32>
  func.return %0 : tensor<8x128xf32>
}

// CHECK: spyre.kernel.constant #spyre.iota
// CHECK: spyre.kernel.constant #spyre.iota
// CHECK: spyre.kernel.compute "greaterequal" [d0 = 8, d1 = 128]
// CHECK: spyre.kernel.compute "where3" [d0 = 8, d1 = 128]

// COST: {{^}}2{{$}}
