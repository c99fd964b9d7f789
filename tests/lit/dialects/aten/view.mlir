// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.view(%{{.*}}) {size = array<i64: 2, -1, 3>} : (tensor<4x6xf32>) -> tensor<2x4x3xf32>
func.func @view(%a: tensor<4x6xf32>) -> tensor<2x4x3xf32> {
  %r = aten.view(%a) {size = array<i64: 2, -1, 3>} : (tensor<4x6xf32>) -> tensor<2x4x3xf32>
  func.return %r : tensor<2x4x3xf32>
}

// CHECK: aten.reshape(%{{.*}}) {size = array<i64: 2, -1, 3>} : (tensor<4x6xf32>) -> tensor<2x4x3xf32>
func.func @reshape(%a: tensor<4x6xf32>) -> tensor<2x4x3xf32> {
  %r = aten.reshape(%a) {size = array<i64: 2, -1, 3>} : (tensor<4x6xf32>) -> tensor<2x4x3xf32>
  func.return %r : tensor<2x4x3xf32>
}

// CHECK: aten._unsafe_view(%{{.*}}) {size = array<i64: 2, -1, 3>} : (tensor<4x6xf32>) -> tensor<2x4x3xf32>
func.func @_unsafe_view(%a: tensor<4x6xf32>) -> tensor<2x4x3xf32> {
  %r = aten._unsafe_view(%a) {size = array<i64: 2, -1, 3>} : (tensor<4x6xf32>) -> tensor<2x4x3xf32>
  func.return %r : tensor<2x4x3xf32>
}

// CHECK: aten.permute(%{{.*}}) {dims = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
func.func @permute(%a: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %r = aten.permute(%a) {dims = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  func.return %r : tensor<4x2x3xf32>
}

// CHECK: aten.transpose.int(%{{.*}}) {dim0 = 0 : i64, dim1 = -1 : i64} : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
func.func @transpose_int(%a: tensor<2x3x4xf32>) -> tensor<4x3x2xf32> {
  %r = aten.transpose.int(%a) {dim0 = 0 : i64, dim1 = -1 : i64} : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  func.return %r : tensor<4x3x2xf32>
}

// CHECK: aten.t(%{{.*}}) : (tensor<3x4xf32>) -> tensor<4x3xf32>
func.func @t(%a: tensor<3x4xf32>) -> tensor<4x3xf32> {
  %r = aten.t(%a) : (tensor<3x4xf32>) -> tensor<4x3xf32>
  func.return %r : tensor<4x3xf32>
}

// CHECK: aten.unsqueeze(%{{.*}}) {dim = -1 : i64} : (tensor<3x4xf32>) -> tensor<3x4x1xf32>
func.func @unsqueeze(%a: tensor<3x4xf32>) -> tensor<3x4x1xf32> {
  %r = aten.unsqueeze(%a) {dim = -1 : i64} : (tensor<3x4xf32>) -> tensor<3x4x1xf32>
  func.return %r : tensor<3x4x1xf32>
}

// CHECK: aten.squeeze.dim(%{{.*}}) {dim = array<i64: 1>} : (tensor<3x1x4xf32>) -> tensor<3x4xf32>
func.func @squeeze_dim(%a: tensor<3x1x4xf32>) -> tensor<3x4xf32> {
  %r = aten.squeeze.dim(%a) {dim = array<i64: 1>} : (tensor<3x1x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// CHECK: aten.squeeze.dims(%{{.*}}) {dim = array<i64: 1>} : (tensor<3x1x4xf32>) -> tensor<3x4xf32>
func.func @squeeze_dims(%a: tensor<3x1x4xf32>) -> tensor<3x4xf32> {
  %r = aten.squeeze.dims(%a) {dim = array<i64: 1>} : (tensor<3x1x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// CHECK: aten.expand(%{{.*}}) {size = array<i64: 2, 3, 5>} : (tensor<3x1xf32>) -> tensor<2x3x5xf32>
func.func @expand(%a: tensor<3x1xf32>) -> tensor<2x3x5xf32> {
  %r = aten.expand(%a) {size = array<i64: 2, 3, 5>} : (tensor<3x1xf32>) -> tensor<2x3x5xf32>
  func.return %r : tensor<2x3x5xf32>
}

// CHECK: aten.select.int(%{{.*}}) {dim = 1 : i64, index = -1 : i64} : (tensor<3x4xf32>) -> tensor<3xf32>
func.func @select_int(%a: tensor<3x4xf32>) -> tensor<3xf32> {
  %r = aten.select.int(%a) {dim = 1 : i64, index = -1 : i64} : (tensor<3x4xf32>) -> tensor<3xf32>
  func.return %r : tensor<3xf32>
}

// CHECK: aten.slice.Tensor(%{{.*}}) {dim = 1 : i64, start = 2 : i64, end = 7 : i64, step = 2 : i64} : (tensor<3x8xf32>) -> tensor<3x3xf32>
func.func @slice_Tensor(%a: tensor<3x8xf32>) -> tensor<3x3xf32> {
  %r = aten.slice.Tensor(%a) {dim = 1 : i64, start = 2 : i64, end = 7 : i64, step = 2 : i64} : (tensor<3x8xf32>) -> tensor<3x3xf32>
  func.return %r : tensor<3x3xf32>
}

// CHECK: aten.alias(%{{.*}}) : (tensor<3x4xf32>) -> tensor<3x4xf32>
func.func @alias(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = aten.alias(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// CHECK: aten.detach(%{{.*}}) : (tensor<3x4xf32>) -> tensor<3x4xf32>
func.func @detach(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = aten.detach(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// CHECK: aten.lift_fresh_copy(%{{.*}}) : (tensor<3x4xf32>) -> tensor<3x4xf32>
func.func @lift_fresh_copy(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = aten.lift_fresh_copy(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// CHECK: aten.squeeze(%{{.*}}) : (tensor<3x1x4xf32>) -> tensor<3x4xf32>
func.func @squeeze(%a: tensor<3x1x4xf32>) -> tensor<3x4xf32> {
  %r = aten.squeeze(%a) : (tensor<3x1x4xf32>) -> tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}
