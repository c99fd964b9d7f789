// RUN: spyre-opt -p shift-rows %s | filecheck %s

// 100 rows are two blocks of 64, and 100 columns two sticks: the first column of the scores gets 28 in front.
func.func @conformer(%q: tensor<2x100x16xf16> {aten.kind = "input"}, %p: tensor<2x16x199xf16> {aten.kind = "input"}, %z: tensor<2x100x1xf16> {aten.kind = "constant"}) -> tensor<2x100x100xf16> {
  %s = aten.matmul(%q, %p) : (tensor<2x100x16xf16>, tensor<2x16x199xf16>) -> tensor<2x100x199xf16>
  %c = aten.cat(%z, %s) {dim = -1 : i64} : (tensor<2x100x1xf16>, tensor<2x100x199xf16>) -> tensor<2x100x200xf16>
  %v = aten.view(%c) {size = array<i64: 2, 200, 100>} : (tensor<2x100x200xf16>) -> tensor<2x200x100xf16>
  %r = aten.slice.Tensor(%v) {dim = 1 : i64, start = 1 : i64} : (tensor<2x200x100xf16>) -> tensor<2x199x100xf16>
  %w = aten.view(%r) {size = array<i64: 2, 100, 199>} : (tensor<2x199x100xf16>) -> tensor<2x100x199xf16>
  %y = aten.slice.Tensor(%w) {dim = 2 : i64, start = 0 : i64, end = 100 : i64} : (tensor<2x100x199xf16>) -> tensor<2x100x100xf16>
  func.return %y : tensor<2x100x100xf16>
}

// CHECK-LABEL: func.func @conformer
// CHECK-NEXT: %[[Q:.*]] = aten.constant_pad_nd(%q) {pad = array<i64: 0, 0, 0, 28>
// CHECK-NEXT: %[[P:.*]] = aten.constant_pad_nd(%p) {pad = array<i64: 28, 29>
// CHECK-NEXT: %[[S:.*]] = aten.matmul(%[[Q]], %[[P]]) : {{.*}} -> tensor<2x128x256xf16>
// CHECK-NEXT: %[[V:.*]] = aten.view(%[[S]]) {size = array<i64: 2, 2, 64, 4, 64>}
// CHECK: aten.permute({{.*}}) {dims = array<i64: 2, 0, 1, 3, 4>}
// CHECK-NEXT: %[[L:.*]] = aten.view({{.*}}) {size = array<i64: 64, 8, 128>}
// CHECK: %[[M:.*]] = aten.where.self({{.*}}) : {{.*}} -> tensor<64x128x64xf16>
// CHECK-NEXT: aten.bmm(%[[L]], %[[M]]) : {{.*}} -> tensor<64x8x64xf16>
// CHECK-NOT: aten.matmul

// The last column of the first row is one of the second row.
func.func @one_more(%q: tensor<2x100x16xf16> {aten.kind = "input"}, %p: tensor<2x16x199xf16> {aten.kind = "input"}, %z: tensor<2x100x1xf16> {aten.kind = "constant"}) -> tensor<2x100x101xf16> {
  %s = aten.matmul(%q, %p) : (tensor<2x100x16xf16>, tensor<2x16x199xf16>) -> tensor<2x100x199xf16>
  %c = aten.cat(%z, %s) {dim = -1 : i64} : (tensor<2x100x1xf16>, tensor<2x100x199xf16>) -> tensor<2x100x200xf16>
  %v = aten.view(%c) {size = array<i64: 2, 200, 100>} : (tensor<2x100x200xf16>) -> tensor<2x200x100xf16>
  %r = aten.slice.Tensor(%v) {dim = 1 : i64, start = 1 : i64} : (tensor<2x200x100xf16>) -> tensor<2x199x100xf16>
  %w = aten.view(%r) {size = array<i64: 2, 100, 199>} : (tensor<2x199x100xf16>) -> tensor<2x100x199xf16>
  %y = aten.slice.Tensor(%w) {dim = 2 : i64, start = 0 : i64, end = 101 : i64} : (tensor<2x100x199xf16>) -> tensor<2x100x101xf16>
  func.return %y : tensor<2x100x101xf16>
}

// CHECK-LABEL: func.func @one_more
// CHECK-NOT: aten.bmm
