// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.clone(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @clone(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.clone(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.contiguous(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @contiguous(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.contiguous(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten._to_copy(%{{.*}}) {dtype = "f16"} : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @_to_copy(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten._to_copy(%a) {dtype = "f16"} : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.cat(%{{.*}}, %{{.*}}) {tensors = #aten.operands<2>, dim = 1 : i64} : (tensor<3x5xf32>, tensor<3x7xf32>) -> tensor<3x12xf32>
func.func @cat(%a: tensor<3x5xf32>, %b: tensor<3x7xf32>) -> tensor<3x12xf32> {
  %r = aten.cat(%a, %b) {tensors = #aten.operands<2>, dim = 1 : i64} : (tensor<3x5xf32>, tensor<3x7xf32>) -> tensor<3x12xf32>
  func.return %r : tensor<3x12xf32>
}

// CHECK: aten.embedding(%{{.*}}, %{{.*}}) : (tensor<10x65xf32>, tensor<2x3xi64>) -> tensor<2x3x65xf32>
func.func @embedding(%a: tensor<10x65xf32>, %b: tensor<2x3xi64>) -> tensor<2x3x65xf32> {
  %r = aten.embedding(%a, %b) : (tensor<10x65xf32>, tensor<2x3xi64>) -> tensor<2x3x65xf32>
  func.return %r : tensor<2x3x65xf32>
}
