// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Windows that do not overlap, 2 by 2 with stride 2: one product, and its result read in another order.
// Cost: 2 SDSCs.

func.func @main(%x: tensor<1x64x4x4xf16>, %w: tensor<64x64x2x2xf16> {aten.kind = "parameter"}) -> tensor<1x64x8x8xf16> {
  %0 = aten.conv_transpose2d.input(%x, %w) {stride = array<i64: 2, 2>} : (tensor<1x64x4x4xf16>, tensor<64x64x2x2xf16>) -> tensor<1x64x8x8xf16>
  func.return %0 : tensor<1x64x8x8xf16>
}

// CHECK: spyre.kernel.to_device %w zero_padding moved [#spyre.move<[d1 = 64, d2_0 = 2, d2_1 = 2, d2_2 = 64]
// CHECK: spyre.kernel.compute "batchmatmul" [m_0 = 4, m_1 = 4, n = 256, k = 64]
// CHECK: spyre.kernel.compute "identity" [d1 = 64, d2_0 = 4, d2_1 = 2, d3_0 = 4, d3_1 = 2]
// CHECK-NOT: spyre.kernel.compute
// CHECK-NOT: spyre.kernel.restickify

// COST: {{^}}2{{$}}
