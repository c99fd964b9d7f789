// RUN: spyre-opt -p convert-spyre-kernel-to-ktdp %s | filecheck %s
// RUN: spyre-translate --target=ktir %s | spyre-opt | spyre-translate --target=ktir | filecheck %s

!t = !spyre.tensor<[512, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 64] x SEN169_FP16, order [1, 0], stick 1, extents [512, 64], hbm>

func.func @main(%x: tensor<512x64xf16>) -> tensor<512x64xf16> {
  %d = spyre.kernel.to_device %x : tensor<512x64xf16> to !t
  %o = spyre.kernel.alloc : !t
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %dt = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !p
    %ot = spyre.kernel.tile %o dim 0 at %i * 128 : !t to !p
    spyre.kernel.compute "exp" [m = 128 over 32, n = 64] ins(%dt[m, n] : !p) outs(%ot[m, n] : !p)
  }
  %r = spyre.kernel.from_device %o : !t to tensor<512x64xf16>
  func.return %r : tensor<512x64xf16>
}

// CHECK:      scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK-NEXT:   %[[M:.*]] = arith.muli %[[I]], %c8192 : index
// CHECK-NEXT:   %[[S:.*]] = arith.addi %x, %[[M]] : index
// CHECK-NEXT:   ktdp.construct_memory_view %[[S]], sizes: [128, 64], strides: [64, 1]
