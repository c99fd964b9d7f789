// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt --print-op-generic | filecheck %s --check-prefix GENERIC

// Infinities and NaNs are bits in text, in every place a float can stand.

// CHECK-LABEL: func.func @dense
// GENERIC: sym_name = "dense"
func.func @dense() {
  // CHECK: dense<0xFC00> : tensor<4xf16>
  // GENERIC: dense<0xFC00> : tensor<4xf16>
  %splat = arith.constant dense<0xFC00> : tensor<4xf16>
  // CHECK: dense<[0xFF80, 1.000000e+00, -0.000000e+00]> : tensor<3xbf16>
  // GENERIC: dense<[0xFF80, 1.000000e+00, -0.000000e+00]> : tensor<3xbf16>
  %elements = arith.constant dense<[0xff80, 1.0, -0.0]> : tensor<3xbf16>
  // CHECK: dense<[0.000000e+00, -0.000000e+00]> : tensor<2xf64>
  // GENERIC: dense<[0.000000e+00, -0.000000e+00]> : tensor<2xf64>
  %zeros = arith.constant dense<[0.0, -0.0]> : tensor<2xf64>
  func.return
}

// CHECK-LABEL: func.func @scalars
// GENERIC: sym_name = "scalars"
func.func @scalars() {
  // CHECK: arith.constant 0x7F800000 : f32
  // GENERIC: value = 0x7F800000 : f32
  %infinity = arith.constant 0x7F800000 : f32
  // CHECK: arith.constant 0x7FF8000000000000 : f64
  // GENERIC: value = 0x7FF8000000000000 : f64
  %nan = arith.constant 0x7FF8000000000000 : f64
  func.return
}

// CHECK: array<f32: 0x7F800000, 0xFF800000, 5.000000e-01>
// GENERIC: array<f32: 0x7F800000, 0xFF800000, 5.000000e-01>
func.func private @arrays() attributes {values = array<f32: 0x7F800000, 0xFF800000, 0.5>}
