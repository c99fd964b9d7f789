// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Dilation changes which slices are copied, groups are the batch of the product, and taps of few channels share the lanes:
// 3 channels under 3 by 3 are 27 summed elements in one stick.
// Cost: 8 SDSCs dilated, 8 in two groups with a stride, 8 along a line, 11 for few channels.

func.func @dilated(%x: tensor<1x64x8x8xf16>, %w: tensor<64x64x3x3xf16> {aten.kind = "parameter"}) -> tensor<1x64x4x4xf16> {
  %0 = aten.conv2d(%x, %w) {dilation = array<i64: 2, 2>} : (tensor<1x64x8x8xf16>, tensor<64x64x3x3xf16>) -> tensor<1x64x4x4xf16>
  func.return %0 : tensor<1x64x4x4xf16>
}

func.func @grouped(%x: tensor<1x128x6x6xf16>, %w: tensor<128x64x3x3xf16> {aten.kind = "parameter"}) -> tensor<1x128x2x4xf16> {
  %0 = aten.conv2d(%x, %w) {groups = 2 : i64, stride = array<i64: 2, 1>} : (tensor<1x128x6x6xf16>, tensor<128x64x3x3xf16>) -> tensor<1x128x2x4xf16>
  func.return %0 : tensor<1x128x2x4xf16>
}

func.func @line(%x: tensor<1x64x16xf16>, %w: tensor<64x64x3xf16> {aten.kind = "parameter"}) -> tensor<1x64x16xf16> {
  %0 = aten.conv1d(%x, %w) {padding = array<i64: 1>} : (tensor<1x64x16xf16>, tensor<64x64x3xf16>) -> tensor<1x64x16xf16>
  func.return %0 : tensor<1x64x16xf16>
}

func.func @few(%x: tensor<1x3x10x10xf16>, %w: tensor<64x3x3x3xf16> {aten.kind = "parameter"}) -> tensor<1x64x8x8xf16> {
  %0 = aten.conv2d(%x, %w) : (tensor<1x3x10x10xf16>, tensor<64x3x3x3xf16>) -> tensor<1x64x8x8xf16>
  func.return %0 : tensor<1x64x8x8xf16>
}

// CHECK-LABEL: func.func @dilated
// CHECK: spyre.kernel.compute "identity" [{{.*}}] ins({{.*}}[0, d3, d1 + 2, d2] :
// CHECK: spyre.kernel.compute "identity" [{{.*}}] ins({{.*}}[0, d3, d1 + 4, d2] :
// CHECK: spyre.kernel.compute "batchmatmul" [b1 = 4, m = 4, n = 64, k = 576]
// CHECK-LABEL: func.func @grouped
// CHECK: spyre.kernel.compute "batchmatmul" [b0 = 2, {{.*}}n = 64, k = 576]
// CHECK-LABEL: func.func @line
// CHECK: spyre.kernel.compute "batchmatmul" [m = 16, n = 64, k = 192]
// CHECK-LABEL: func.func @few
// CHECK: spyre.kernel.compute "batchmatmul" [b1 = 8, m = 8, n = 64, k = 27]

// COST: {{^}}35{{$}}
