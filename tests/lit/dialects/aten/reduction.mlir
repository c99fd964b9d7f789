// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.sum.dim_IntList(%{{.*}}) {dim = array<i64: -1>, keepdim = true} : (tensor<3x65xf32>) -> tensor<3x1xf32>
func.func @sum_dim_IntList(%a: tensor<3x65xf32>) -> tensor<3x1xf32> {
  %r = aten.sum.dim_IntList(%a) {dim = array<i64: -1>, keepdim = true} : (tensor<3x65xf32>) -> tensor<3x1xf32>
  func.return %r : tensor<3x1xf32>
}

// CHECK: aten.amax(%{{.*}}) {dim = array<i64: -1>, keepdim = true} : (tensor<3x65xf32>) -> tensor<3x1xf32>
func.func @amax(%a: tensor<3x65xf32>) -> tensor<3x1xf32> {
  %r = aten.amax(%a) {dim = array<i64: -1>, keepdim = true} : (tensor<3x65xf32>) -> tensor<3x1xf32>
  func.return %r : tensor<3x1xf32>
}

// CHECK: aten.amin(%{{.*}}) {dim = array<i64: -1>, keepdim = true} : (tensor<3x65xf32>) -> tensor<3x1xf32>
func.func @amin(%a: tensor<3x65xf32>) -> tensor<3x1xf32> {
  %r = aten.amin(%a) {dim = array<i64: -1>, keepdim = true} : (tensor<3x65xf32>) -> tensor<3x1xf32>
  func.return %r : tensor<3x1xf32>
}
