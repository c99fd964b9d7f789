// RUN: spyre-opt -p convert-spyre-kernel-to-ktdp %s | filecheck %s
// RUN: spyre-translate --target=ktir %s | spyre-opt | spyre-translate --target=ktir | filecheck %s

// A bias of one dimension is repeated. The view of a tensor that is read in its own order is the device tensor.

!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!b = !spyre.tensor<[128] x SEN169_FP16, order [0], stick 0, hbm>

func.func @main(%x: tensor<64x128xf16>, %y: tensor<128xf16>) -> tensor<64x128xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf16> to !t
  %1 = spyre.kernel.to_device %y : tensor<128xf16> to !b
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "add" [m = 64 over 32, n = 128] ins(%0[m, n] : !t, %1[n] : !b) outs(%2[m, n] : !t)
  %3 = spyre.kernel.from_device %2 : !t to tensor<64x128xf16>
  func.return %3 : tensor<64x128xf16>
}

// CHECK:      func.func @main(%x: index, %y: index, %output0: index) attributes {grid = [32
// CHECK:        %core = ktdp.get_compute_tile_id : index
// CHECK:        %[[ROW:.*]] = arith.muli %core, %c2 : index
// CHECK:        ktdp.construct_memory_view %x, sizes: [2, 64, 64], strides: [4096, 64, 1] {{.*}}memory_space = #ktdp.memory_space<global>} : memref<2x64x64xf16>
// CHECK:        ktdp.construct_access_tile %x_view[%c0, %[[ROW]], %c0] {{.*}} -> !ktdp.access_tile<2x2x64xindex>
// CHECK:        %[[X:.*]] = ktdp.load
// CHECK:        %[[Y:.*]] = ktdp.load {{.*}} -> tensor<2x64xf16>
// CHECK:        %[[B:.*]] = linalg.broadcast ins(%[[Y]]:tensor<2x64xf16>) outs(%{{.*}}:tensor<2x2x64xf16>) dimensions = [1]
// CHECK-NEXT:   %[[S:.*]] = arith.addf %[[X]], %[[B]] : tensor<2x2x64xf16>
// CHECK:        ktdp.store %[[S]]
