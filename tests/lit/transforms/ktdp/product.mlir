// RUN: spyre-opt -p convert-spyre-kernel-to-ktdp %s | filecheck %s
// RUN: spyre-translate --target=ktir %s | spyre-opt | spyre-translate --target=ktir | filecheck %s
// RUN: spyre-opt -p 'convert-spyre-kernel-to-ktdp{tile=4096}' %s | filecheck %s --check-prefix LOOP

// Two rows by eight parts of the sum: cores 8 g to 8 g + 7 add up, the first of them writes.

!a = !spyre.tensor<[64, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>
!b = !spyre.tensor<[1024, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!c = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<64x1024xf16>, %y: tensor<1024x64xf16>) -> tensor<64x64xf16> {
  %a = spyre.kernel.to_device %x : tensor<64x1024xf16> to !a
  %b = spyre.kernel.to_device %y : tensor<1024x64xf16> to !b
  %c = spyre.kernel.alloc : !c
  spyre.kernel.compute "batchmatmul" [m = 64 over 2, n = 64, k = 1024 over 8] ins(%a[m, k] : !a, %b[k, n] : !b) outs(%c[m, n] : !c)
  %r = spyre.kernel.from_device %c : !c to tensor<64x64xf16>
  func.return %r : tensor<64x64xf16>
}

// CHECK:      grid = [16
// CHECK:      %[[TEAM:.*]] = arith.divui %core, %c8 : index
// CHECK:      %[[PART:.*]] = arith.remui %core, %c8 : index
// CHECK:      %writer = arith.cmpi eq, %[[PART]], %c0 : index
// CHECK:      %[[A:.*]] = tensor.collapse_shape {{.*}} : tensor<32x2x64xf32> into tensor<32x128xf32>
// CHECK:      %[[B:.*]] = tensor.collapse_shape {{.*}} : tensor<2x64x64xf32> into tensor<128x64xf32>
// CHECK:      linalg.matmul ins(%[[A]], %[[B]] : tensor<32x128xf32>, tensor<128x64xf32>)
// CHECK:      ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(d0)[s0] : (d0 - 8 * s0 >= 0, -d0 + 8 * s0 + 7 >= 0)> : tensor<32x64xf32> -> !ktdp.tile_future<tensor<32x64xf32>, groups = affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>>
// CHECK:      ktdp.inter_tile_reduce
// CHECK:      scf.if %writer {

// LOOP:       scf.for {{.*}} iter_args
