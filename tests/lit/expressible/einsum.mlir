// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// What the import makes of torch.einsum("bhid,bhjd->bhij", q, k), see tests/end_to_end/ops/test_einsum.py: orders of dimensions
// around one product, all of them views. Cost: 2 SDSCs, the product and a copy of what the host reads.

func.func @main(%q: tensor<2x4x32x64xf32>, %k: tensor<2x4x48x64xf32>) -> tensor<2x4x32x48xf32> {
  %0 = aten.unsqueeze(%q) {dim = 4 : i64} : (tensor<2x4x32x64xf32>) -> tensor<2x4x32x64x1xf32>
  %1 = aten.permute(%0) {dims = array<i64: 0, 1, 2, 4, 3>} : (tensor<2x4x32x64x1xf32>) -> tensor<2x4x32x1x64xf32>
  %2 = aten.unsqueeze(%k) {dim = 4 : i64} : (tensor<2x4x48x64xf32>) -> tensor<2x4x48x64x1xf32>
  %3 = aten.permute(%2) {dims = array<i64: 0, 1, 4, 2, 3>} : (tensor<2x4x48x64x1xf32>) -> tensor<2x4x1x48x64xf32>
  %4 = aten.permute(%1) {dims = array<i64: 0, 1, 2, 4, 3>} : (tensor<2x4x32x1x64xf32>) -> tensor<2x4x32x64x1xf32>
  %5 = aten.view(%4) {size = array<i64: 8, 32, 64>} : (tensor<2x4x32x64x1xf32>) -> tensor<8x32x64xf32>
  %6 = aten.permute(%3) {dims = array<i64: 0, 1, 4, 3, 2>} : (tensor<2x4x1x48x64xf32>) -> tensor<2x4x64x48x1xf32>
  %7 = aten.view(%6) {size = array<i64: 8, 64, 48>} : (tensor<2x4x64x48x1xf32>) -> tensor<8x64x48xf32>
  %8 = aten.bmm(%5, %7) : (tensor<8x32x64xf32>, tensor<8x64x48xf32>) -> tensor<8x32x48xf32>
  %9 = aten.view(%8) {size = array<i64: 2, 4, 32, 1, 48>} : (tensor<8x32x48xf32>) -> tensor<2x4x32x1x48xf32>
  %10 = aten.permute(%9) {dims = array<i64: 0, 1, 2, 4, 3>} : (tensor<2x4x32x1x48xf32>) -> tensor<2x4x32x48x1xf32>
  %11 = aten.view(%10) {size = array<i64: 2, 4, 32, 48>} : (tensor<2x4x32x48x1xf32>) -> tensor<2x4x32x48xf32>
  func.return %11 : tensor<2x4x32x48xf32>
}

// CHECK: spyre.kernel.compute "batchmatmul"
// CHECK: spyre.kernel.compute "identity" [d0 = 2, d1 = 4, d2 = 32, d3 = 48]

// COST: {{^}}2{{$}}
