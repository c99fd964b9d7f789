// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.cos(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @cos(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.cos(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.sin(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @sin(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.sin(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}
