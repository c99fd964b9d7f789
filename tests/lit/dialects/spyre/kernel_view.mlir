// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt --print-op-generic | filecheck %s --check-prefix GENERIC

!t = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!v = !spyre.tensor<[8, 1024] x SEN169_FP16, order [0, 1], stick 1, hbm>

// CHECK-LABEL: func.func @rows_of_sixteen_sticks
func.func @rows_of_sixteen_sticks(%x: tensor<128x64xf16>) -> tensor<8x1024xf16> {
  %d = spyre.kernel.to_device %x : tensor<128x64xf16> to !t
  // CHECK: %[[V:.*]] = spyre.kernel.view %{{.*}} : !spyre.tensor<[128, 64] {{.*}}> to !spyre.tensor<[8, 1024] x SEN169_FP16, order [0, 1], stick 1, hbm>
  // GENERIC: "spyre.kernel.view"(%{{.*}}) : (!spyre.tensor<[128, 64]
  %v = spyre.kernel.view %d : !t to !v
  %o = spyre.kernel.alloc : !v
  // CHECK: "exp" [m = 8, n = 1024] ins(%[[V]][m, n]
  spyre.kernel.compute "exp" [m = 8, n = 1024] ins(%v[m, n] : !v) outs(%o[m, n] : !v)
  %r = spyre.kernel.from_device %o : !v to tensor<8x1024xf16>
  func.return %r : tensor<8x1024xf16>
}
