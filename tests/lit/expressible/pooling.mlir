// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// The largest of 2 by 2, and where it stands: along each dimension one comparison, one choice of the place, and one
// maximum of two slices; once the row's number is added.
// Cost: 8 SDSCs; the places come from the host.

func.func @main(%x: tensor<1x64x4x4xf16>) -> (tensor<1x64x2x2xf16>, tensor<1x64x2x2xi64>) {
  %0, %1 = aten.max_pool2d_with_indices(%x) {kernel_size = array<i64: 2, 2>} : (tensor<1x64x4x4xf16>) -> (tensor<1x64x2x2xf16>, tensor<1x64x2x2xi64>)
  func.return %0, %1 : tensor<1x64x2x2xf16>, tensor<1x64x2x2xi64>
}

// CHECK: spyre.kernel.compute "greaterthan" [d1 = 64, d2 = 4, d3 = 2]
// CHECK: spyre.kernel.compute "where3"
// CHECK: spyre.kernel.compute "maximum"
// CHECK-COUNT-2: spyre.kernel.compute "add" [d1 = 64, d2 = 2, d3 = 2]
// CHECK: spyre.kernel.compute "greaterthan" [d1 = 64, d2 = 2, d3 = 2]
// CHECK: spyre.kernel.compute "where3"
// CHECK: spyre.kernel.compute "maximum"
// CHECK-NOT: spyre.kernel.compute

// COST: {{^}}8{{$}}
