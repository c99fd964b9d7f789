// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.constant_pad_nd(%{{.*}}) {pad = array<i64: 1, 2>, value = 5.000000e-01 : f64} : (tensor<3x5xf32>) -> tensor<3x8xf32>
func.func @constant_pad_nd(%a: tensor<3x5xf32>) -> tensor<3x8xf32> {
  %r = aten.constant_pad_nd(%a) {pad = array<i64: 1, 2>, value = 5.000000e-01 : f64} : (tensor<3x5xf32>) -> tensor<3x8xf32>
  func.return %r : tensor<3x8xf32>
}

// CHECK: aten.index_copy(%{{.*}}, %{{.*}}, %{{.*}}) {dim = 1 : i64} : (tensor<2x7x4xf32>, tensor<1xi64>, tensor<2x1x4xf32>) -> tensor<2x7x4xf32>
func.func @index_copy(%a: tensor<2x7x4xf32>, %b: tensor<1xi64>, %c: tensor<2x1x4xf32>) -> tensor<2x7x4xf32> {
  %r = aten.index_copy(%a, %b, %c) {dim = 1 : i64} : (tensor<2x7x4xf32>, tensor<1xi64>, tensor<2x1x4xf32>) -> tensor<2x7x4xf32>
  func.return %r : tensor<2x7x4xf32>
}

// CHECK: aten.index_select(%{{.*}}, %{{.*}}) {dim = 0 : i64} : (tensor<5x6xf32>, tensor<3xi64>) -> tensor<3x6xf32>
func.func @index_select(%a: tensor<5x6xf32>, %b: tensor<3xi64>) -> tensor<3x6xf32> {
  %r = aten.index_select(%a, %b) {dim = 0 : i64} : (tensor<5x6xf32>, tensor<3xi64>) -> tensor<3x6xf32>
  func.return %r : tensor<3x6xf32>
}

// CHECK: aten.select_scatter(%{{.*}}, %{{.*}}) {dim = 1 : i64, index = -2 : i64} : (tensor<3x8xf32>, tensor<3xf32>) -> tensor<3x8xf32>
func.func @select_scatter(%a: tensor<3x8xf32>, %b: tensor<3xf32>) -> tensor<3x8xf32> {
  %r = aten.select_scatter(%a, %b) {dim = 1 : i64, index = -2 : i64} : (tensor<3x8xf32>, tensor<3xf32>) -> tensor<3x8xf32>
  func.return %r : tensor<3x8xf32>
}

// CHECK: aten.slice_scatter(%{{.*}}, %{{.*}}) {dim = 1 : i64, start = 3 : i64, end = 5 : i64} : (tensor<3x8xf32>, tensor<3x2xf32>) -> tensor<3x8xf32>
func.func @slice_scatter(%a: tensor<3x8xf32>, %b: tensor<3x2xf32>) -> tensor<3x8xf32> {
  %r = aten.slice_scatter(%a, %b) {dim = 1 : i64, start = 3 : i64, end = 5 : i64} : (tensor<3x8xf32>, tensor<3x2xf32>) -> tensor<3x8xf32>
  func.return %r : tensor<3x8xf32>
}

// CHECK: aten.stack(%{{.*}}, %{{.*}}) {tensors = #aten.operands<2>, dim = 1 : i64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x2x5xf32>
func.func @stack(%a: tensor<3x5xf32>, %b: tensor<3x5xf32>) -> tensor<3x2x5xf32> {
  %r = aten.stack(%a, %b) {tensors = #aten.operands<2>, dim = 1 : i64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x2x5xf32>
  func.return %r : tensor<3x2x5xf32>
}
