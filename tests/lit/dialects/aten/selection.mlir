// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.bitwise_or.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
func.func @bitwise_or_Tensor(%a: tensor<3x64xi1>, %b: tensor<3x64xi1>) -> tensor<3x64xi1> {
  %r = aten.bitwise_or.Tensor(%a, %b) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.bitwise_xor.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
func.func @bitwise_xor_Tensor(%a: tensor<3x64xi1>, %b: tensor<3x64xi1>) -> tensor<3x64xi1> {
  %r = aten.bitwise_xor.Tensor(%a, %b) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.logical_or(%{{.*}}, %{{.*}}) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
func.func @logical_or(%a: tensor<3x64xi1>, %b: tensor<3x64xi1>) -> tensor<3x64xi1> {
  %r = aten.logical_or(%a, %b) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.logical_xor(%{{.*}}, %{{.*}}) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
func.func @logical_xor(%a: tensor<3x64xi1>, %b: tensor<3x64xi1>) -> tensor<3x64xi1> {
  %r = aten.logical_xor(%a, %b) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.masked_fill.Scalar(%{{.*}}, %{{.*}}) {value = 5.000000e-01 : f64} : (tensor<3x64xf32>, tensor<64xi1>) -> tensor<3x64xf32>
func.func @masked_fill_Scalar(%a: tensor<3x64xf32>, %b: tensor<64xi1>) -> tensor<3x64xf32> {
  %r = aten.masked_fill.Scalar(%a, %b) {value = 5.000000e-01 : f64} : (tensor<3x64xf32>, tensor<64xi1>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.masked_fill.Tensor(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<64xi1>, tensor<f32>) -> tensor<3x64xf32>
func.func @masked_fill_Tensor(%a: tensor<3x64xf32>, %b: tensor<64xi1>, %c: tensor<f32>) -> tensor<3x64xf32> {
  %r = aten.masked_fill.Tensor(%a, %b, %c) : (tensor<3x64xf32>, tensor<64xi1>, tensor<f32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.rsub.Scalar(%{{.*}}) {other = 5.000000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @rsub_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.rsub.Scalar(%a) {other = 5.000000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.tril(%{{.*}}) : (tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
func.func @tril(%a: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %r = aten.tril(%a) : (tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  func.return %r : tensor<2x5x4xf32>
}

// CHECK: aten.triu(%{{.*}}) : (tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
func.func @triu(%a: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %r = aten.triu(%a) : (tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  func.return %r : tensor<2x5x4xf32>
}
