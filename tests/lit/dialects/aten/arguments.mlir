// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt --print-op-generic | filecheck %s --check-prefix GENERIC

// Overloads without a class, absent tensors, and numbers in a tensor's place.

func.func @forms(%x: tensor<4x8xf32>, %m: tensor<4x8xi1>, %b: tensor<8xf32>) {
  // CHECK: aten.call "aten.topk"(%x) {self = #aten.operands<1>, k = 2 : i64} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  // GENERIC: "aten.call"(%x) <{callee = "aten.topk", arguments = {self = #aten.operands<1>, k = 2 : i64}}>
  %0, %1 = aten.call "aten.topk"(%x) {self = #aten.operands<1>, k = 2} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  // CHECK: aten.layer_norm(%x, %b) {weight = #aten.none, normalized_shape = array<i64: 8>}
  // GENERIC: "aten.layer_norm"(%x, %b) <{arguments = {weight = #aten.none, normalized_shape = array<i64: 8>}}>
  %2 = aten.layer_norm(%x, %b) {weight = #aten.none, normalized_shape = array<i64: 8>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: aten.where.self(%m, %x) {other = -6.550400e+04 : f64}
  // GENERIC: "aten.where.self"(%m, %x) <{arguments = {other = -6.550400e+04 : f64}}>
  %3 = aten.where.self(%m, %x) {other = -65504.0} : (tensor<4x8xi1>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: aten.cat(%x, %x) {tensors = #aten.operands<2>, dim = 1 : i64}
  // GENERIC: "aten.cat"(%x, %x) <{arguments = {tensors = #aten.operands<2>, dim = 1 : i64}}>
  %4 = aten.cat(%x, %x) {tensors = #aten.operands<2>, dim = 1} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  func.return
}
