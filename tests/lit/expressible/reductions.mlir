// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// A variance is a mean of squared distances, a product multiplies halves, and questions of truth are extremes.
// Cost: 7 SDSCs for a variance, 9 for a product of 128 elements, 2 for any truth value, 3 for all numbers.

func.func @var(%x: tensor<4x130xf32>) -> tensor<4xf32> {
  %0 = aten.var.correction(%x) {dim = array<i64: 1>, correction = 1 : i64} : (tensor<4x130xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

func.func @prod(%x: tensor<4x128xf32>) -> tensor<4xf32> {
  %0 = aten.prod.dim_int(%x) {dim = array<i64: 1>} : (tensor<4x128xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

func.func @any(%x: tensor<4x130xi1>) -> tensor<4xi1> {
  %0 = aten.any.dim(%x) {dim = array<i64: 1>} : (tensor<4x130xi1>) -> tensor<4xi1>
  func.return %0 : tensor<4xi1>
}

func.func @all(%x: tensor<4x130xf32>) -> tensor<4xi1> {
  %0 = aten.all.dim(%x) {dim = array<i64: 1>} : (tensor<4x130xf32>) -> tensor<4xi1>
  func.return %0 : tensor<4xi1>
}

// CHECK-LABEL: func.func @var
// CHECK: spyre.kernel.compute "sum" [d0 = 4, r = 130]
// CHECK: spyre.kernel.compute "realdiv"
// CHECK: spyre.kernel.compute "sub" [d0 = 4, d1 = 130]
// CHECK: spyre.kernel.compute "mul" [d0 = 4, d1 = 130]
// CHECK: spyre.kernel.compute "sum" [d0 = 4, r = 130]
// CHECK: spyre.kernel.compute "realdiv"
// CHECK-LABEL: func.func @prod
// CHECK: spyre.kernel.compute "mul" [d0 = 4, d1 = 64]
// CHECK: spyre.kernel.compute "mul" [d0 = 4, d1 = 32]
// CHECK: spyre.kernel.compute "mul" [d0 = 4, d1 = 16]
// CHECK-COUNT-4: spyre.kernel.compute "mul"
// CHECK-LABEL: func.func @any
// CHECK: spyre.kernel.compute "max" [d0 = 4, r = 130]
// CHECK-LABEL: func.func @all
// CHECK: spyre.kernel.compute "min" [d0 = 4, r = 130]

// COST: {{^}}21{{$}}
