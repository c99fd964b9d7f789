// RUN: spyre-opt -p convert-spyre-kernel-to-ktdp %s | filecheck %s
// RUN: spyre-translate --target=ktir %s | spyre-opt | spyre-translate --target=ktir | filecheck %s

// The middle stays in the scratchpad, at its end; readers that give tiles addresses start with the lowest.

!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!l = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, lx>

func.func @main(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf16> to !t
  %1 = spyre.kernel.alloc at 0 : i64 : !l
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64 over 32, n = 128] ins(%0[m, n] : !t) outs(%1[m, n] : !l)
  spyre.kernel.compute "neg" [m = 64 over 32, n = 128] ins(%1[m, n] : !l) outs(%2[m, n] : !t)
  %3 = spyre.kernel.from_device %2 : !t to tensor<64x128xf16>
  func.return %3 : tensor<64x128xf16>
}

// CHECK:      %[[END:.*]] = arith.constant 1048320 : index
// CHECK:      ktdp.construct_memory_view %[[END]], sizes: [2, 2, 64], strides: [128, 64, 1] {{.*}}memory_space = #ktdp.memory_space<ct_local>}
// CHECK:      math.exp
// CHECK:      ktdp.construct_access_tile %local_view[%c0, %c0, %c0]
// CHECK:      ktdp.store
// CHECK:      ktdp.construct_access_tile %local_view[%c0, %c0, %c0]
// CHECK-NEXT: ktdp.load
// CHECK-NEXT: arith.negf
