// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Every dimension is a product with a matrix that the host provides.
// Cost: 7 SDSCs; the others clear the lanes behind 4 elements, and change the order of dimensions.

func.func @main(%x: tensor<1x2x4x4xf16>) -> tensor<1x2x8x6xf16> {
  %0 = aten.upsample_bilinear2d(%x) {output_size = array<i64: 8, 6>, align_corners = false} : (tensor<1x2x4x4xf16>) -> tensor<1x2x8x6xf16>
  func.return %0 : tensor<1x2x8x6xf16>
}

// CHECK: spyre.kernel.constant #spyre.resample<"linear", 0.6666666666666666, -0.16666666666666669>
// CHECK: spyre.kernel.compute "where3"
// CHECK: spyre.kernel.compute "batchmatmul" [m_0 = 2, m_1 = 4, n = 6, k = 4]
// CHECK: spyre.kernel.compute "identity"
// CHECK: spyre.kernel.restickify
// CHECK: spyre.kernel.constant #spyre.resample<"linear", 0.5, -0.25>
// CHECK: spyre.kernel.compute "where3"
// CHECK: spyre.kernel.compute "batchmatmul" [b0 = 2, m = 6, n = 8, k = 4]
// CHECK: spyre.kernel.compute "identity"
// CHECK-NOT: spyre.kernel.compute

// COST: {{^}}7{{$}}
