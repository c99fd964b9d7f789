// RUN: spyre-opt -p convert-spyre-kernel-to-ktdp %s | filecheck %s
// RUN: spyre-translate --target=ktir %s | spyre-opt | spyre-translate --target=ktir | filecheck %s

// 100 of 128 lanes: one whole stick, then 36 lanes of the next. The sum is kept in single precision.

!t = !spyre.tensor<[32, 100] x SEN169_FP16, order [1, 0], stick 1, hbm>
!s = !spyre.tensor<[32] x SEN169_FP16, order [unit, 0], stick unit, hbm>

func.func @main(%x: tensor<32x100xf16>) -> tensor<32xf16> {
  %0 = spyre.kernel.to_device %x : tensor<32x100xf16> to !t
  %1 = spyre.kernel.alloc : !s
  spyre.kernel.compute "sum" [m = 32 over 32, r = 100] ins(%0[m, r] : !t) outs(%1[m] : !s)
  %2 = spyre.kernel.from_device %1 : !s to tensor<32xf16>
  func.return %2 : tensor<32xf16>
}

// CHECK:      construct_access_tile %x_view[%c0, %core, %c0] {{.*}} -> !ktdp.access_tile<1x1x64xindex>
// CHECK:      arith.extf {{.*}} to tensor<1x1x64xf32>
// CHECK:      %[[A:.*]] = linalg.reduce ins(%{{.*}}:tensor<1x1x64xf32>) outs(%{{.*}}:tensor<1xf32>) dimensions = [0, 2]
// CHECK:      construct_access_tile %x_view[%c1, %core, %c0] {{.*}} -> !ktdp.access_tile<1x1x36xindex>
// CHECK:      %[[B:.*]] = linalg.reduce
// CHECK:      %[[S:.*]] = arith.addf %[[A]], %[[B]] : tensor<1xf32>
// CHECK-NEXT: arith.truncf %[[S]] : tensor<1xf32> to tensor<1xf16>
