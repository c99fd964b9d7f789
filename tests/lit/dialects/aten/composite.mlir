// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.addmm(%{{.*}}, %{{.*}}, %{{.*}}) {beta = 2 : i64, alpha = 5.000000e-01 : f64} : (tensor<3x4xf32>, tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
func.func @addmm(%a: tensor<3x4xf32>, %b: tensor<3x5xf32>, %c: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %r = aten.addmm(%a, %b, %c) {beta = 2 : i64, alpha = 5.000000e-01 : f64} : (tensor<3x4xf32>, tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// CHECK: aten.pow.Tensor_Scalar(%{{.*}}) {exponent = 2 : i64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @pow_Tensor_Scalar(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.pow.Tensor_Scalar(%a) {exponent = 2 : i64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.mean.dim(%{{.*}}) {dim = array<i64: -1>, keepdim = true} : (tensor<3x65xf32>) -> tensor<3x1xf32>
func.func @mean_dim(%a: tensor<3x65xf32>) -> tensor<3x1xf32> {
  %r = aten.mean.dim(%a) {dim = array<i64: -1>, keepdim = true} : (tensor<3x65xf32>) -> tensor<3x1xf32>
  func.return %r : tensor<3x1xf32>
}

// CHECK: aten.softmax.int(%{{.*}}) {dim = -1 : i64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @softmax_int(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.softmax.int(%a) {dim = -1 : i64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten._softmax(%{{.*}}) {dim = -1 : i64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @_softmax(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten._softmax(%a) {dim = -1 : i64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.rms_norm(%{{.*}}, %{{.*}}) {normalized_shape = array<i64: 65>, eps = 1.1920928955078125e-07 : f64} : (tensor<3x65xf32>, tensor<65xf32>) -> tensor<3x65xf32>
func.func @rms_norm(%a: tensor<3x65xf32>, %b: tensor<65xf32>) -> tensor<3x65xf32> {
  %r = aten.rms_norm(%a, %b) {normalized_shape = array<i64: 65>, eps = 1.1920928955078125e-07 : f64} : (tensor<3x65xf32>, tensor<65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.layer_norm(%{{.*}}, %{{.*}}, %{{.*}}) {normalized_shape = array<i64: 65>} : (tensor<3x65xf32>, tensor<65xf32>, tensor<65xf32>) -> tensor<3x65xf32>
func.func @layer_norm(%a: tensor<3x65xf32>, %b: tensor<65xf32>, %c: tensor<65xf32>) -> tensor<3x65xf32> {
  %r = aten.layer_norm(%a, %b, %c) {normalized_shape = array<i64: 65>} : (tensor<3x65xf32>, tensor<65xf32>, tensor<65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.scaled_dot_product_attention(%{{.*}}, %{{.*}}, %{{.*}}) {is_causal = true, scale = 5.000000e-01 : f64, enable_gqa = true} : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> tensor<1x4x5x8xf32>
func.func @scaled_dot_product_attention(%a: tensor<1x4x5x8xf32>, %b: tensor<1x2x5x8xf32>, %c: tensor<1x2x5x8xf32>) -> tensor<1x4x5x8xf32> {
  %r = aten.scaled_dot_product_attention(%a, %b, %c) {is_causal = true, scale = 5.000000e-01 : f64, enable_gqa = true} : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> tensor<1x4x5x8xf32>
  func.return %r : tensor<1x4x5x8xf32>
}
