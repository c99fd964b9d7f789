// REQUIRES: mlir-opt
// RUN: spyre-opt %s --print-op-generic | mlir-opt | filecheck %s

// Upstream MLIR reads our bits as the same values.

// CHECK-LABEL: func.func @f
func.func @f() {
  // CHECK: dense<[0xFC00, 0x7C00, 1.000000e+00]> : tensor<3xf16>
  %0 = arith.constant dense<[0xfc00, 0x7c00, 1.0]> : tensor<3xf16>
  func.return
}
