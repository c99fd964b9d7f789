// RUN: spyre-opt -p convert-spyre-kernel-to-ktdp %s | filecheck %s
// RUN: spyre-translate --target=ktir %s | spyre-opt | spyre-translate --target=ktir | filecheck %s

!i = !spyre.tensor<[128] x SENUINT32, order [0], stick 0, hbm>
!w = !spyre.tensor<[1000, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>
!o = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<128xi64>, %y: tensor<1000x128xf16>) -> tensor<128x128xf16> {
  %i = spyre.kernel.to_device %x : tensor<128xi64> to !i
  %w = spyre.kernel.to_device %y : tensor<1000x128xf16> to !w
  %o = spyre.kernel.alloc : !o
  spyre.kernel.gather axis 0 [t = 128 over 4, n = 128] ins(%i[t] : !i, %w[0, n] : !w) outs(%o[t, n] : !o)
  %r = spyre.kernel.from_device %o : !o to tensor<128x128xf16>
  func.return %r : tensor<128x128xf16>
}

// CHECK:      ktdp.construct_memory_view %x, sizes: [128], strides: [1] {{.*}} : memref<128xi32>
// CHECK:      ktdp.construct_memory_view %y, sizes: [1000, 2, 64], strides: [128, 64, 1] {{.*}} : memref<1000x2x64xf16>
// CHECK:      ktdp.construct_indirect_access_tile intermediate_variables(%_iv0, %_iv1, %_iv2) %y_view[ind(%x_view[%_iv1 + %first_t]), (%_iv0), (%_iv2)]
