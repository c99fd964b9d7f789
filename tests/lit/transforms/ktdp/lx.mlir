// RUN: spyre-opt -p convert-spyre-kernel-to-ktdp %s | filecheck %s
// RUN: spyre-translate --target=ktir %s | spyre-opt | spyre-translate --target=ktir | filecheck %s

// The middle is a tensor: nothing is stored between the two kernels, and no view is of the scratchpad.

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

// CHECK-NOT:  ct_local
// CHECK:      %[[X:.*]] = ktdp.load {{.*}} -> tensor<2x2x64xf16>
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]] : tensor<2x2x64xf16>
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[E]] : tensor<2x2x64xf16>
// CHECK-NEXT: ktdp.construct_access_tile %output0_view
// CHECK-NEXT: ktdp.store %[[N]]
