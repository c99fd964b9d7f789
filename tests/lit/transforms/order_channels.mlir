// RUN: spyre-opt -p order-channels --split-input-file %s | filecheck %s

// The 4 outputs of each pixel are the outermost channels.
// CHECK-LABEL: @shuffle
// CHECK:      aten.view(%w) {size = array<i64: 64, 4, 3, 1, 1>}
// CHECK:      [[P:%.+]] = aten.permute({{.+}}) {dims = array<i64: 1, 0, 2, 3, 4>}
// CHECK:      [[W:%.+]] = aten.view([[P]]) {size = array<i64: 256, 3, 1, 1>}
// CHECK:      [[Y:%.+]] = aten.conv2d(%x, [[W]])
// CHECK:      [[V:%.+]] = aten.view([[Y]]) {size = array<i64: 1, 2, 2, 64, 8, 8>}
// CHECK:      [[Z:%.+]] = aten.permute([[V]]) {dims = array<i64: 0, 3, 1, 2, 4, 5>}
// CHECK:      aten.permute([[Z]]) {dims = array<i64: 0, 1, 4, 2, 5, 3>}
func.func @shuffle(%x: tensor<1x3x8x8xf16>, %w: tensor<256x3x1x1xf16> {aten.kind = "parameter"}) -> tensor<1x64x8x2x8x2xf16> {
  %0 = aten.conv2d(%x, %w) {stride = array<i64: 1, 1>} : (tensor<1x3x8x8xf16>, tensor<256x3x1x1xf16>) -> tensor<1x256x8x8xf16>
  %1 = aten.view(%0) {size = array<i64: 1, 64, 2, 2, 8, 8>} : (tensor<1x256x8x8xf16>) -> tensor<1x64x2x2x8x8xf16>
  %2 = aten.permute(%1) {dims = array<i64: 0, 1, 4, 2, 5, 3>} : (tensor<1x64x2x2x8x8xf16>) -> tensor<1x64x8x2x8x2xf16>
  func.return %2 : tensor<1x64x8x2x8x2xf16>
}

// -----

// CHECK-LABEL: @reverse
// CHECK:      [[P:%.+]] = aten.permute({{.+}}) {dims = array<i64: 0, 2, 3, 1, 4, 5>}
// CHECK:      [[X:%.+]] = aten.view([[P]]) {size = array<i64: 1, 256, 4, 4>}
// CHECK:      [[W:%.+]] = aten.view({{.+}}) {size = array<i64: 5, 256, 1, 1>}
// CHECK:      aten.conv2d([[X]], [[W]])
func.func @reverse(%x: tensor<1x64x4x2x4x2xf16>, %w: tensor<5x256x1x1xf16> {aten.kind = "parameter"}) -> tensor<1x5x4x4xf16> {
  %0 = aten.permute(%x) {dims = array<i64: 0, 1, 3, 5, 2, 4>} : (tensor<1x64x4x2x4x2xf16>) -> tensor<1x64x2x2x4x4xf16>
  %1 = aten.view(%0) {size = array<i64: 1, 256, 4, 4>} : (tensor<1x64x2x2x4x4xf16>) -> tensor<1x256x4x4xf16>
  %2 = aten.conv2d(%1, %w) {stride = array<i64: 1, 1>} : (tensor<1x256x4x4xf16>, tensor<5x256x1x1xf16>) -> tensor<1x5x4x4xf16>
  func.return %2 : tensor<1x5x4x4xf16>
}

// -----

// Channels of half a stick are copied one by one whatever their order.
// CHECK-LABEL: @half
// CHECK:      aten.conv2d(%x, %w)
func.func @half(%x: tensor<1x3x8x8xf16>, %w: tensor<128x3x1x1xf16> {aten.kind = "parameter"}) -> tensor<1x32x8x2x8x2xf16> {
  %0 = aten.conv2d(%x, %w) {stride = array<i64: 1, 1>} : (tensor<1x3x8x8xf16>, tensor<128x3x1x1xf16>) -> tensor<1x128x8x8xf16>
  %1 = aten.view(%0) {size = array<i64: 1, 32, 2, 2, 8, 8>} : (tensor<1x128x8x8xf16>) -> tensor<1x32x2x2x8x8xf16>
  %2 = aten.permute(%1) {dims = array<i64: 0, 1, 4, 2, 5, 3>} : (tensor<1x32x2x2x8x8xf16>) -> tensor<1x32x8x2x8x2xf16>
  func.return %2 : tensor<1x32x8x2x8x2xf16>
}
