// RUN: spyre-opt %s --print-op-generic | mlir-opt --allow-unregistered-dialect --mlir-print-op-generic | spyre-opt - | filecheck %s
// REQUIRES: mlir-opt

// CHECK: aten.relu
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = aten.relu(%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %0 : tensor<4x64xf32>
}
