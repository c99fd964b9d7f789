// RUN: spyre-opt -p fold-padding %s | filecheck %s

// As many zeros before as behind are padding of the usual operator; a row and a column behind alone are not.
// CHECK:      func.func @main
// CHECK-NEXT: %[[A:.*]] = aten.conv2d(%x, %w) {{.*}}padding = array<i64: 1, 1>
// CHECK-NEXT: {{.*}}convolve_padded{{.*}}(%[[A]], %w) {{.*}}behind = array<i64: 1, 1>
func.func @main(%x: tensor<1x4x6x6xf16>, %w: tensor<4x4x3x3xf16>) -> tensor<1x4x5x5xf16> {
  %0 = aten.constant_pad_nd(%x) {pad = [1, 1, 1, 1]} : (tensor<1x4x6x6xf16>) -> tensor<1x4x8x8xf16>
  %1 = aten.conv2d(%0, %w) : (tensor<1x4x8x8xf16>, tensor<4x4x3x3xf16>) -> tensor<1x4x6x6xf16>
  %2 = aten.constant_pad_nd(%1) {pad = [0, 1, 0, 1]} : (tensor<1x4x6x6xf16>) -> tensor<1x4x7x7xf16>
  %3 = aten.conv2d(%2, %w) : (tensor<1x4x7x7xf16>, tensor<4x4x3x3xf16>) -> tensor<1x4x5x5xf16>
  func.return %3 : tensor<1x4x5x5xf16>
}
