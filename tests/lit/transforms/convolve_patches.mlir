// RUN: spyre-opt -p convolve-patches %s | filecheck %s

// Rows, columns and channels of a patch, in this order: the host puts the channels of the weight first.
func.func @taps_first(%x: tensor<2x3x32x64xf16> {aten.kind = "input"}, %w: tensor<8x768xf16> {aten.kind = "parameter"}, %b: tensor<8xf16> {aten.kind = "parameter"}) -> tensor<2x8x8xf16> {
  %v = aten.view(%x) {size = array<i64: 2, 3, 2, 16, 4, 16>} : (tensor<2x3x32x64xf16>) -> tensor<2x3x2x16x4x16xf16>
  %p = aten.permute(%v) {dims = array<i64: 0, 2, 4, 3, 5, 1>} : (tensor<2x3x2x16x4x16xf16>) -> tensor<2x2x4x16x16x3xf16>
  %r = aten.view(%p) {size = array<i64: 2, 8, 768>} : (tensor<2x2x4x16x16x3xf16>) -> tensor<2x8x768xf16>
  %y = aten.linear(%r, %w, %b) : (tensor<2x8x768xf16>, tensor<8x768xf16>, tensor<8xf16>) -> tensor<2x8x8xf16>
  func.return %y : tensor<2x8x8xf16>
}

// CHECK-LABEL: func.func @taps_first
// CHECK-NEXT: %[[X:.*]] = aten.view(%x) {size = array<i64: 2, 3, 32, 64>}
// CHECK-NEXT: %[[W0:.*]] = aten.view(%w) {size = array<i64: 8, 16, 16, 3>
// CHECK-NEXT: %[[W1:.*]] = aten.permute(%[[W0]]) {dims = array<i64: 0, 3, 1, 2>
// CHECK-NEXT: %[[W:.*]] = aten.view(%[[W1]]) {size = array<i64: 8, 3, 16, 16>
// CHECK-NEXT: %[[C:.*]] = aten.conv2d(%[[X]], %[[W]], %b) {stride = array<i64: 16, 16>{{.*}}} : {{.*}} -> tensor<2x8x2x4xf16>
// CHECK-NEXT: %[[B:.*]] = aten.view(%[[C]]) {size = array<i64: 2, 8, 2, 4>}
// CHECK-NEXT: %[[T:.*]] = aten.permute(%[[B]]) {dims = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: aten.view(%[[T]]) {size = array<i64: 2, 8, 8>}

// Columns of windows that overlap, by unfold.
func.func @windows(%x: tensor<1x3x9x12xf16> {aten.kind = "input"}, %w: tensor<8x48xf16> {aten.kind = "parameter"}) -> tensor<1x9x8xf16> {
  %u = aten.unfold(%x) {dimension = 2 : i64, size = 4 : i64, step = 2 : i64} : (tensor<1x3x9x12xf16>) -> tensor<1x3x3x12x4xf16>
  %v = aten.unfold(%u) {dimension = 3 : i64, size = 4 : i64, step = 4 : i64} : (tensor<1x3x3x12x4xf16>) -> tensor<1x3x3x3x4x4xf16>
  %p = aten.permute(%v) {dims = array<i64: 0, 2, 3, 1, 4, 5>} : (tensor<1x3x3x3x4x4xf16>) -> tensor<1x3x3x3x4x4xf16>
  %r = aten.view(%p) {size = array<i64: 1, 9, 48>} : (tensor<1x3x3x3x4x4xf16>) -> tensor<1x9x48xf16>
  %y = aten.linear(%r, %w) : (tensor<1x9x48xf16>, tensor<8x48xf16>) -> tensor<1x9x8xf16>
  func.return %y : tensor<1x9x8xf16>
}

// CHECK-LABEL: func.func @windows
// CHECK: aten.conv2d({{.*}}) {{.*}}stride = array<i64: 2, 4>

// Columns of heads are parts of one axis.
func.func @heads(%x: tensor<2x5x48xf16> {aten.kind = "input"}, %w: tensor<16x16xf16> {aten.kind = "parameter"}) -> tensor<2x3x5x16xf16> {
  %v = aten.view(%x) {size = array<i64: 2, 5, 3, 16>} : (tensor<2x5x48xf16>) -> tensor<2x5x3x16xf16>
  %p = aten.permute(%v) {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x5x3x16xf16>) -> tensor<2x3x5x16xf16>
  %y = aten.linear(%p, %w) : (tensor<2x3x5x16xf16>, tensor<16x16xf16>) -> tensor<2x3x5x16xf16>
  func.return %y : tensor<2x3x5x16xf16>
}

// CHECK-LABEL: func.func @heads
// CHECK: aten.linear
