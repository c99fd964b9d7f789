// RUN: spyre-opt %s --verify-diagnostics --split-input-file

func.func @result_shape(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{aten.add.Tensor gives shape (4, 8), but its result is tensor<4x4xf32>}}
  %0 = aten.add.Tensor(%a, %a) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  func.return
}

// -----

func.func @broadcast(%a: tensor<4x8xf32>, %b: tensor<4x4xf32>) {
  // expected-error@+1 {{aten.add.Tensor: shapes (4, 8), (4, 4) do not broadcast}}
  %0 = aten.add.Tensor(%a, %b) : (tensor<4x8xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  func.return
}

// -----

func.func @matmul_c2(%a: tensor<3x5xf32>, %b: tensor<4x4xf32>) {
  // expected-error@+1 {{aten.mm: C2: inner extents 5 and 4 differ}}
  %0 = aten.mm(%a, %b) : (tensor<3x5xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @matmul_c1(%a: tensor<f32>, %b: tensor<5x4xf32>) {
  // expected-error@+1 {{aten.mm: C1: operands of rank 0 and 2, expected 1 or more}}
  %0 = aten.mm(%a, %b) : (tensor<f32>, tensor<5x4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @cat_c1(%a: tensor<3x5xf32>, %b: tensor<4x7xf32>) {
  // expected-error@+1 {{aten.cat: C1: shapes (3, 5) and (4, 7) differ outside dimension 1}}
  %0 = aten.cat(%a, %b) {dim = 1} : (tensor<3x5xf32>, tensor<4x7xf32>) -> tensor<3x12xf32>
  func.return
}

// -----

func.func @unknown_argument(%a: tensor<4xf32>) {
  // expected-error@+1 {{aten.neg has no argument 'alpha'; its arguments are self}}
  %0 = aten.neg(%a) {alpha = 2} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @missing_argument(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{aten.permute needs the argument 'dims'}}
  %0 = aten.permute(%a) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return
}

// -----

func.func @kind_of_argument(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{argument 'dim' of aten.select.int is 'x', expected int}}
  %0 = aten.select.int(%a) {dim = "x", index = 0} : (tensor<4x8xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @surplus_operand(%a: tensor<4xf32>) {
  // expected-error@+1 {{1 operands more than the schema of aten.neg takes}}
  %0 = aten.neg(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @index_range(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{aten.select.int: index 4 of a dimension of extent 4}}
  %0 = aten.select.int(%a) {dim = 0, index = 4} : (tensor<4x8xf32>) -> tensor<8xf32>
  func.return
}

// -----

func.func @reshape(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{aten.view: reshape of 32 elements to (5, -1)}}
  %0 = aten.view(%a) {size = array<i64: 5, -1>} : (tensor<4x8xf32>) -> tensor<5x6xf32>
  func.return
}
