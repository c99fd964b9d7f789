// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Every channel by itself, 3 by 3: the taps side by side, 3 copies along each dimension, one multiplication, and a sum
// along each dimension of taps. The channels stay in the lanes.
// Cost: 10 SDSCs with the result in the order of the model; multiplications and additions tap by tap would take 18.

func.func @main(%x: tensor<1x8x8x64xf16>, %w: tensor<64x1x3x3xf16> {aten.kind = "parameter"}) -> tensor<1x64x6x6xf16> {
  %0 = aten.permute(%x) {dims = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x64xf16>) -> tensor<1x64x8x8xf16>
  %1 = aten.conv2d(%0, %w) {groups = 64 : i64} : (tensor<1x64x8x8xf16>, tensor<64x1x3x3xf16>) -> tensor<1x64x6x6xf16>
  func.return %1 : tensor<1x64x6x6xf16>
}

// CHECK-COUNT-3: spyre.kernel.compute "identity" [d1 = 6, d2 = 8, d4 = 64]
// CHECK-COUNT-3: spyre.kernel.compute "identity" [d1 = 6, d2 = 6, d4 = 3, d5 = 64]
// CHECK: spyre.kernel.compute "mul" [d1 = 6, d2 = 6, d3 = 3, d4 = 3, d5 = 64]
// CHECK-COUNT-2: spyre.kernel.compute "sum"
// CHECK: spyre.kernel.compute "identity" [d1 = 64, d2 = 6, d3 = 6]
// CHECK-NOT: spyre.kernel.compute
// CHECK-NOT: spyre.kernel.restickify

// COST: {{^}}10{{$}}
