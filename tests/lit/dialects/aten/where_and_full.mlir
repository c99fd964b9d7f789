// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.bitwise_not(%{{.*}}) : (tensor<3x65xi1>) -> tensor<3x65xi1>
func.func @bitwise_not(%a: tensor<3x65xi1>) -> tensor<3x65xi1> {
  %r = aten.bitwise_not(%a) : (tensor<3x65xi1>) -> tensor<3x65xi1>
  func.return %r : tensor<3x65xi1>
}

// CHECK: aten.full() {size = array<i64: 3, 5>, fill_value = 5.000000e-01 : f64} : () -> tensor<3x5xf32>
func.func @full() -> tensor<3x5xf32> {
  %r = aten.full() {size = array<i64: 3, 5>, fill_value = 5.000000e-01 : f64} : () -> tensor<3x5xf32>
  func.return %r : tensor<3x5xf32>
}

// CHECK: aten.where.Scalar(%{{.*}}) {self = 5.000000e-01 : f64, other = 5.000000e-01 : f64} : (tensor<3x64xi1>) -> tensor<3x64xf32>
func.func @where_Scalar(%a: tensor<3x64xi1>) -> tensor<3x64xf32> {
  %r = aten.where.Scalar(%a) {self = 5.000000e-01 : f64, other = 5.000000e-01 : f64} : (tensor<3x64xi1>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.where.ScalarOther(%{{.*}}, %{{.*}}) {other = 5.000000e-01 : f64} : (tensor<3x64xi1>, tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @where_ScalarOther(%a: tensor<3x64xi1>, %b: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.where.ScalarOther(%a, %b) {other = 5.000000e-01 : f64} : (tensor<3x64xi1>, tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.where.ScalarSelf(%{{.*}}, %{{.*}}) {self = 5.000000e-01 : f64} : (tensor<3x64xi1>, tensor<64xf32>) -> tensor<3x64xf32>
func.func @where_ScalarSelf(%a: tensor<3x64xi1>, %b: tensor<64xf32>) -> tensor<3x64xf32> {
  %r = aten.where.ScalarSelf(%a, %b) {self = 5.000000e-01 : f64} : (tensor<3x64xi1>, tensor<64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}
