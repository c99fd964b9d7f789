// RUN: spyre-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: aten.add.Tensor gives shape (4, 8), but its result is tensor<4x4xf32>
func.func @result_shape(%a: tensor<4x8xf32>) {
  %0 = aten.add.Tensor(%a, %a) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  func.return
}

// -----

// CHECK: aten.add.Tensor: shapes (4, 8), (4, 4) do not broadcast
func.func @broadcast(%a: tensor<4x8xf32>, %b: tensor<4x4xf32>) {
  %0 = aten.add.Tensor(%a, %b) : (tensor<4x8xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  func.return
}

// -----

// CHECK: aten.mm: C2: inner extents 5 and 4 differ
func.func @matmul_c2(%a: tensor<3x5xf32>, %b: tensor<4x4xf32>) {
  %0 = aten.mm(%a, %b) : (tensor<3x5xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

// CHECK: aten.mm: C1: operands of rank 0 and 2, expected 1 or more
func.func @matmul_c1(%a: tensor<f32>, %b: tensor<5x4xf32>) {
  %0 = aten.mm(%a, %b) : (tensor<f32>, tensor<5x4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: aten.cat: C1: shapes (3, 5) and (4, 7) differ outside dimension 1
func.func @cat_c1(%a: tensor<3x5xf32>, %b: tensor<4x7xf32>) {
  %0 = aten.cat(%a, %b) {dim = 1} : (tensor<3x5xf32>, tensor<4x7xf32>) -> tensor<3x12xf32>
  func.return
}

// -----

// CHECK: aten.neg has no argument 'alpha'; its arguments are self
func.func @unknown_argument(%a: tensor<4xf32>) {
  %0 = aten.neg(%a) {alpha = 2} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: aten.permute needs the argument 'dims'
func.func @missing_argument(%a: tensor<4x8xf32>) {
  %0 = aten.permute(%a) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return
}

// -----

// CHECK: argument 'dim' of aten.select.int is 'x', expected int
func.func @kind_of_argument(%a: tensor<4x8xf32>) {
  %0 = aten.select.int(%a) {dim = "x", index = 0} : (tensor<4x8xf32>) -> tensor<8xf32>
  func.return
}

// -----

// CHECK: 1 operands more than the schema of aten.neg takes
func.func @surplus_operand(%a: tensor<4xf32>) {
  %0 = aten.neg(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: aten.select.int: index 4 of a dimension of extent 4
func.func @index_range(%a: tensor<4x8xf32>) {
  %0 = aten.select.int(%a) {dim = 0, index = 4} : (tensor<4x8xf32>) -> tensor<8xf32>
  func.return
}

// -----

// CHECK: aten.view: reshape of 32 elements to (5, -1)
func.func @reshape(%a: tensor<4x8xf32>) {
  %0 = aten.view(%a) {size = array<i64: 5, -1>} : (tensor<4x8xf32>) -> tensor<5x6xf32>
  func.return
}
