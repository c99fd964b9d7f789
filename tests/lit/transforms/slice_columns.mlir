// RUN: spyre-opt -p slice-columns %s | filecheck %s

// Queries and keys are in front of the rows: each is a slice of the columns, in the order of the selection.

// CHECK:      func.func @main
// CHECK:      %[[Y:.*]] = aten.linear(%x, %w)
// CHECK-NEXT: %[[COLUMNS:.*]] = aten.slice.Tensor(%[[Y]]) {dim = -1 : i64, start = 0 : i64, end = 128 : i64} : (tensor<8x256xf16>) -> tensor<8x128xf16>
// CHECK-NEXT: %[[HEADS:.*]] = aten.view(%[[COLUMNS]]) {size = array<i64: 8, 2, 64>}
// CHECK-NEXT: %[[Q:.*]] = aten.permute(%[[HEADS]]) {dims = array<i64: 1, 0, 2>}
// CHECK:      aten.slice.Tensor(%[[Y]]) {dim = -1 : i64, start = 128 : i64, end = 256 : i64}
// CHECK-NOT:  aten.select.int
func.func @main(%x: tensor<8x64xf16>, %w: tensor<256x64xf16>) -> tensor<2x8x64xf16> {
  %y = aten.linear(%x, %w) : (tensor<8x64xf16>, tensor<256x64xf16>) -> tensor<8x256xf16>
  %parted = aten.view(%y) {size = [8, 2, 2, 64]} : (tensor<8x256xf16>) -> tensor<8x2x2x64xf16>
  %moved = aten.permute(%parted) {dims = [1, 2, 0, 3]} : (tensor<8x2x2x64xf16>) -> tensor<2x2x8x64xf16>
  %q = aten.select.int(%moved) {dim = 0, index = 0} : (tensor<2x2x8x64xf16>) -> tensor<2x8x64xf16>
  %k = aten.select.int(%moved) {dim = 0, index = 1} : (tensor<2x2x8x64xf16>) -> tensor<2x8x64xf16>
  %z = aten.mul.Tensor(%q, %k) : (tensor<2x8x64xf16>, tensor<2x8x64xf16>) -> tensor<2x8x64xf16>
  func.return %z : tensor<2x8x64xf16>
}
