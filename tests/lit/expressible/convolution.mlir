// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// 3 by 3 over 64 channels, stride 2, padding 1: borders along one dimension where the window reaches them and 3 copies, the same along
// the other, and one product over 9 * 64 elements. The host brings the weight into that order.
// Cost: 12 SDSCs with the borders and the result in the order of the model; a product per tap would take 22.

func.func @main(%x: tensor<1x64x8x8xf16>, %w: tensor<64x64x3x3xf16> {aten.kind = "parameter"}) -> tensor<1x64x4x4xf16> {
  %0 = aten.conv2d(%x, %w) {stride = array<i64: 2, 2>, padding = array<i64: 1, 1>} : (tensor<1x64x8x8xf16>, tensor<64x64x3x3xf16>) -> tensor<1x64x4x4xf16>
  func.return %0 : tensor<1x64x4x4xf16>
}

// CHECK-COUNT-2: spyre.kernel.compute "identity"
// CHECK: spyre.kernel.compute "identity" [d1 = 4, d2 = 8, d3 = 64] ins({{.*}}[0, d1 * 2, d2, d3] :
// CHECK: spyre.kernel.compute "identity" [d1 = 4, d2 = 8, d3 = 64] ins({{.*}}[0, d1 * 2 + 1, d2, d3] :{{.*}}outs({{.*}}[0, d1, d2, d3 + 64] :
// CHECK: spyre.kernel.compute "identity" [d1 = 4, d2 = 8, d3 = 64] ins({{.*}}[0, d1 * 2 + 2, d2, d3] :{{.*}}outs({{.*}}[0, d1, d2, d3 + 128] :
// CHECK-COUNT-2: spyre.kernel.compute "identity"
// CHECK-COUNT-3: spyre.kernel.compute "identity" [d1 = 4, d2 = 4, d3 = 192]
// CHECK: spyre.kernel.to_device %w zero_padding moved [#spyre.move<[d2_0 = 3, d2_1 = 3, d2_2 = 64, d3 = 64] [d3, d2_2, d2_1, d2_0] -> [0, 0, d2_0 * 192 + d2_1 * 64 + d2_2, d3] of [1, 1, 576, 64]>]
// CHECK: spyre.kernel.compute "batchmatmul" [b1 = 4, m = 4, n = 64, k = 576]
// CHECK: spyre.kernel.compute "identity" [d1 = 64, d2 = 4, d3 = 4]
// CHECK-NOT: spyre.kernel.compute
// CHECK-NOT: spyre.kernel.restickify

// COST: {{^}}12{{$}}
