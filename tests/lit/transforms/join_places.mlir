// RUN: spyre-opt -p join-places --split-input-file %s | filecheck %s

// Heads of 32 channels are rows of a product whose columns are places.
// CHECK-LABEL: @heads
// CHECK:      [[M:%.+]] = aten.view(%w) {size = array<i64: 96, 32>}
// CHECK:      [[X:%.+]] = aten.view(%x) {size = array<i64: 1, 32, 64>}
// CHECK:      [[Y:%.+]] = aten.matmul([[M]], [[X]])
// CHECK:      [[B:%.+]] = aten.view(%b) {size = array<i64: 96, 1>}
// CHECK:      [[Z:%.+]] = aten.add.Tensor([[Y]], [[B]])
// CHECK:      aten.view([[Z]]) {size = array<i64: 1, 3, 32, 64>}
func.func @heads(%x: tensor<1x32x8x8xf16>, %w: tensor<96x32x1x1xf16>, %b: tensor<96xf16>) -> tensor<1x3x32x64xf16> {
  %0 = aten.conv2d(%x, %w, %b) {stride = array<i64: 1, 1>} : (tensor<1x32x8x8xf16>, tensor<96x32x1x1xf16>, tensor<96xf16>) -> tensor<1x96x8x8xf16>
  %1 = aten.view(%0) {size = array<i64: 1, 3, 32, 64>} : (tensor<1x96x8x8xf16>) -> tensor<1x3x32x64xf16>
  func.return %1 : tensor<1x3x32x64xf16>
}

// -----

// Heads of 64 channels are whole sticks.
// CHECK-LABEL: @whole
// CHECK:      aten.conv2d
func.func @whole(%x: tensor<1x32x8x8xf16>, %w: tensor<192x32x1x1xf16>) -> tensor<1x3x64x64xf16> {
  %0 = aten.conv2d(%x, %w) {stride = array<i64: 1, 1>} : (tensor<1x32x8x8xf16>, tensor<192x32x1x1xf16>) -> tensor<1x192x8x8xf16>
  %1 = aten.view(%0) {size = array<i64: 1, 3, 64, 64>} : (tensor<1x192x8x8xf16>) -> tensor<1x3x64x64xf16>
  func.return %1 : tensor<1x3x64x64xf16>
}

// -----

// The convolution behind attention reads heads side by side.
// CHECK-LABEL: @behind
// CHECK:      [[Y:%.+]] = aten.matmul
// CHECK:      aten.view([[Y]]) {size = array<i64: 1, 32, 8, 8>}
func.func @behind(%x: tensor<1x3x32x64xf16>, %w: tensor<32x96x1x1xf16>) -> tensor<1x32x8x8xf16> {
  %0 = aten.view(%x) {size = array<i64: 1, 96, 8, 8>} : (tensor<1x3x32x64xf16>) -> tensor<1x96x8x8xf16>
  %1 = aten.conv2d(%0, %w) {stride = array<i64: 1, 1>} : (tensor<1x96x8x8xf16>, tensor<32x96x1x1xf16>) -> tensor<1x32x8x8xf16>
  func.return %1 : tensor<1x32x8x8xf16>
}
