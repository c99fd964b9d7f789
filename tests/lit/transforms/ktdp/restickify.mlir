// RUN: spyre-opt -p convert-spyre-kernel-to-ktdp %s | filecheck %s
// RUN: spyre-translate --target=ktir %s | spyre-opt | spyre-translate --target=ktir | filecheck %s

// Rows into columns: both sides are strided views, and the load already has the order of the store.

!r = !spyre.tensor<[128, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!c = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 0, hbm>

func.func @main(%x: tensor<128x64xf16>) -> tensor<128x64xf16> {
  %0 = spyre.kernel.to_device %x : tensor<128x64xf16> to !r
  %1 = spyre.kernel.alloc : !c
  spyre.kernel.restickify [m = 128 over 2, n = 64] ins(%0[m, n] : !r) outs(%1[m, n] : !c)
  %2 = spyre.kernel.from_device %1 : !c to tensor<128x64xf16>
  func.return %2 : tensor<128x64xf16>
}

// CHECK:      ktdp.construct_memory_view %x, sizes: [2, 64, 64], strides: [4096, 1, 64]
// CHECK:      ktdp.construct_memory_view %output0, sizes: [2, 64, 64], strides: [4096, 64, 1]
// CHECK:      %[[T:.*]] = ktdp.load
// CHECK:      ktdp.store %[[T]]
