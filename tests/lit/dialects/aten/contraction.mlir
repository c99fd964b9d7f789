// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.mm(%{{.*}}, %{{.*}}) : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
func.func @mm(%a: tensor<3x5xf32>, %b: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %r = aten.mm(%a, %b) : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// CHECK: aten.bmm(%{{.*}}, %{{.*}}) : (tensor<2x3x65xf32>, tensor<2x65x7xf32>) -> tensor<2x3x7xf32>
func.func @bmm(%a: tensor<2x3x65xf32>, %b: tensor<2x65x7xf32>) -> tensor<2x3x7xf32> {
  %r = aten.bmm(%a, %b) : (tensor<2x3x65xf32>, tensor<2x65x7xf32>) -> tensor<2x3x7xf32>
  func.return %r : tensor<2x3x7xf32>
}

// CHECK: aten.matmul(%{{.*}}, %{{.*}}) : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
func.func @matmul(%a: tensor<3x5xf32>, %b: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %r = aten.matmul(%a, %b) : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// CHECK: aten.linear(%{{.*}}, %{{.*}}) : (tensor<2x3x65xf32>, tensor<33x65xf32>) -> tensor<2x3x33xf32>
func.func @linear(%a: tensor<2x3x65xf32>, %b: tensor<33x65xf32>) -> tensor<2x3x33xf32> {
  %r = aten.linear(%a, %b) : (tensor<2x3x65xf32>, tensor<33x65xf32>) -> tensor<2x3x33xf32>
  func.return %r : tensor<2x3x33xf32>
}
