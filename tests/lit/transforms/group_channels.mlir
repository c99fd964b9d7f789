// RUN: spyre-opt -p group-channels %s | filecheck %s

// Channels are in the lanes behind a convolution, and stay there; those of an input may lie otherwise.
// CHECK:      aten.call "spyre::group_norm_by_channels"
// CHECK:      aten.group_norm(%x)
func.func @main(%x: tensor<2x64x6x6xf16>, %w: tensor<64x64x3x3xf16>) -> (tensor<2x64x6x6xf16>, tensor<2x64x6x6xf16>) {
  %0 = aten.conv2d(%x, %w) {padding = array<i64: 1, 1>} : (tensor<2x64x6x6xf16>, tensor<64x64x3x3xf16>) -> tensor<2x64x6x6xf16>
  %1 = aten.group_norm(%0) {num_groups = 8} : (tensor<2x64x6x6xf16>) -> tensor<2x64x6x6xf16>
  %2 = aten.group_norm(%x) {num_groups = 8} : (tensor<2x64x6x6xf16>) -> tensor<2x64x6x6xf16>
  func.return %1, %2 : tensor<2x64x6x6xf16>, tensor<2x64x6x6xf16>
}
