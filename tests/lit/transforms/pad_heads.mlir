// RUN: spyre-opt -p pad-heads %s | filecheck %s

// Values are of four heads of 32 channels: the weight that makes them gets rows of zeros, the one behind attention columns.

// CHECK:      func.func @main
// CHECK:      %[[ROWS:.*]] = aten.constant_pad_nd(%{{.*}}) {pad = array<i64: 0, 0, 0, 32>} attributes {spyre.widened} : (tensor<4x32x128xf16>) -> tensor<4x64x128xf16>
// CHECK-NEXT: %[[WEIGHT:.*]] = aten.view(%[[ROWS]]) {size = array<i64: 256, 128>}
// CHECK-NEXT: %[[VALUES:.*]] = aten.linear(%x, %[[WEIGHT]])
// CHECK-NEXT: aten.view(%[[VALUES]]) {size = array<i64: 1, 64, 4, 64>}
// CHECK:      aten.matmul(%scores, %{{.*}}) : (tensor<1x4x64x64xf16>, tensor<1x4x64x64xf16>) -> tensor<1x4x64x64xf16>
// CHECK:      %[[JOINED:.*]] = aten.view(%{{.*}}) {size = array<i64: 1, 64, 256>}
// CHECK:      aten.constant_pad_nd(%{{.*}}) {pad = array<i64: 0, 32>} attributes {spyre.widened} : (tensor<128x4x32xf16>) -> tensor<128x4x64xf16>
// CHECK:      aten.linear(%[[JOINED]], %{{.*}}) : (tensor<1x64x256xf16>, tensor<128x256xf16>) -> tensor<1x64x128xf16>
func.func @main(%x: tensor<1x64x128xf16>, %scores: tensor<1x4x64x64xf16>, %wv: tensor<128x128xf16> {aten.kind = "parameter"},
                %wo: tensor<128x128xf16> {aten.kind = "parameter"}) -> tensor<1x64x128xf16> {
  %v = aten.linear(%x, %wv) : (tensor<1x64x128xf16>, tensor<128x128xf16>) -> tensor<1x64x128xf16>
  %parted = aten.view(%v) {size = [1, 64, 4, 32]} : (tensor<1x64x128xf16>) -> tensor<1x64x4x32xf16>
  %heads = aten.permute(%parted) {dims = [0, 2, 1, 3]} : (tensor<1x64x4x32xf16>) -> tensor<1x4x64x32xf16>
  %y = aten.matmul(%scores, %heads) : (tensor<1x4x64x64xf16>, tensor<1x4x64x32xf16>) -> tensor<1x4x64x32xf16>
  %rows = aten.permute(%y) {dims = [0, 2, 1, 3]} : (tensor<1x4x64x32xf16>) -> tensor<1x64x4x32xf16>
  %joined = aten.view(%rows) {size = [1, 64, 128]} : (tensor<1x64x4x32xf16>) -> tensor<1x64x128xf16>
  %o = aten.linear(%joined, %wo) : (tensor<1x64x128xf16>, tensor<128x128xf16>) -> tensor<1x64x128xf16>
  func.return %o : tensor<1x64x128xf16>
}
