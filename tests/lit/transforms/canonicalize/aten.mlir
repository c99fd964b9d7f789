// RUN: spyre-opt -p canonicalize %s | filecheck %s

// CHECK-LABEL: func.func @views(
// CHECK-NEXT:    func.return %x, %x, %x, %x
func.func @views(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %same = aten.permute(%x) {dims = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = aten.t(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %back = aten.transpose.int(%t) {dim0 = 0 : i64, dim1 = -1 : i64} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %flat = aten.view(%x) {size = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<32xf32>
  %whole = aten.view(%flat) {size = array<i64: 4, 8>} : (tensor<32xf32>) -> tensor<4x8xf32>
  %all = aten.slice.Tensor(%x) {dim = 1 : i64, start = 0 : i64, end = 9 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %same, %back, %whole, %all : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Equal shapes do not make a permutation the identity, and the host keeps its steps.
// CHECK-LABEL: func.func @views_that_move(
// CHECK-NEXT:    aten.t(%x)
// CHECK-NEXT:    aten.permute(%x) {dims = array<i64: 0, 1>, spyre.host = "asked"}
func.func @views_that_move(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %t = aten.t(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %host = aten.permute(%x) {dims = array<i64: 0, 1>, spyre.host = "asked"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %t, %host : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @chains(
// CHECK-NEXT:    aten.permute(%x) {dims = array<i64: 2, 1, 0>}
// CHECK-NEXT:    aten.view(%x) {size = array<i64: 6, 4>}
// CHECK-NEXT:    func.return
func.func @chains(%x: tensor<2x3x4xf32>) -> (tensor<4x3x2xf32>, tensor<6x4xf32>) {
  %t = aten.transpose.int(%x) {dim0 = 0 : i64, dim1 = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %p = aten.permute(%t) {dims = array<i64: 2, 0, 1>} : (tensor<3x2x4xf32>) -> tensor<4x3x2xf32>
  %u = aten.unsqueeze(%x) {dim = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %v = aten.view(%u) {size = array<i64: 6, 4>} : (tensor<1x2x3x4xf32>) -> tensor<6x4xf32>
  func.return %p, %v : tensor<4x3x2xf32>, tensor<6x4xf32>
}

// A reshape of a transposed tensor reads the elements in another order.
// CHECK-LABEL: func.func @chains_that_move(
// CHECK-NEXT:    %[[T:.*]] = aten.t(%x)
// CHECK-NEXT:    aten.view(%[[T]])
func.func @chains_that_move(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %t = aten.t(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %v = aten.view(%t) {size = array<i64: 32>} : (tensor<8x4xf32>) -> tensor<32xf32>
  func.return %v : tensor<32xf32>
}

// CHECK-LABEL: func.func @copies(
// CHECK-NEXT:    func.return %x, %x, %x
func.func @copies(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %clone = aten.clone(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %to = aten._to_copy(%x) {dtype = f32} : (tensor<4xf32>) -> tensor<4xf32>
  %cat = aten.cat(%x) {tensors = #aten.operands<1>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %clone, %to, %cat : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A copy that rounds what it copies is none.
// CHECK-LABEL: func.func @copies_that_round(
// CHECK-NEXT:    aten._to_copy(%x) {dtype = f16}
// CHECK-NEXT:    %[[E:.*]] = aten.exp(%x) {spyre.wide}
// CHECK-NEXT:    aten.clone(%[[E]])
func.func @copies_that_round(%x: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xf32>) {
  %to = aten._to_copy(%x) {dtype = f16} : (tensor<4xf32>) -> tensor<4xf16>
  %e = aten.exp(%x) {spyre.wide} : (tensor<4xf32>) -> tensor<4xf32>
  %clone = aten.clone(%e) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %to, %clone : tensor<4xf16>, tensor<4xf32>
}

// CHECK-LABEL: func.func @neutral(
// CHECK-NEXT:    func.return %n, %n, %n
func.func @neutral(%n: tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>) {
  %add = aten.add.Tensor(%n) {other = 0 : i64, alpha = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  %sub = aten.sub.Tensor(%n) {other = 0 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  %mul = aten.mul.Tensor(%n) {other = 1 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  func.return %add, %sub, %mul : tensor<4xi64>, tensor<4xi64>, tensor<4xi64>
}

// -0.0 + 0 is 0.0, a NaN times 1 may be another NaN, 0 - n is -n, and other numbers are not neutral.
// CHECK-LABEL: func.func @not_neutral(
// CHECK-NEXT:    aten.add.Tensor(%x) {other = 0 : i64}
// CHECK-NEXT:    aten.mul.Tensor(%x) {other = 1 : i64}
// CHECK-NEXT:    aten.sub.Tensor(%n) {self = 0 : i64}
// CHECK-NEXT:    aten.add.Tensor(%n) {other = 1 : i64}
func.func @not_neutral(%x: tensor<4xf32>, %n: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<4xi64>) {
  %add = aten.add.Tensor(%x) {other = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %mul = aten.mul.Tensor(%x) {other = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %neg = aten.sub.Tensor(%n) {self = 0 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  %more = aten.add.Tensor(%n) {other = 1 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  func.return %add, %mul, %neg, %more : tensor<4xf32>, tensor<4xf32>, tensor<4xi64>, tensor<4xi64>
}

// CHECK-LABEL: func.func @unused(
// CHECK-NEXT:    func.return
func.func @unused(%x: tensor<4xf32>) {
  %e = aten.exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
