// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt --print-op-generic | filecheck %s --check-prefix GENERIC

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!rows = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
!part = !spyre.tensor<[128, 64] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>

// CHECK-LABEL: func.func @nested
func.func @nested(%x: tensor<512x128xf16>) -> tensor<512x128xf16> {
  %d = spyre.kernel.to_device %x : tensor<512x128xf16> to !t
  %o = spyre.kernel.alloc : !t
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
  scf.for %i = %c0 to %c4 step %c1 {
    // CHECK-NEXT: spyre.kernel.tile %{{.*}} dim 0 at %[[I]] * 128 : !spyre.tensor<[512, 128] {{.*}}> to !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
    // GENERIC: "spyre.kernel.tile"(%{{.*}}, %{{.*}}) <{dim = 0 : i64, step = 128 : i64}>
    %dt = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !rows
    %ot = spyre.kernel.tile %o dim 0 at %i * 128 : !t to !rows
    // CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step
    scf.for %j = %c0 to %c2 step %c1 {
      // CHECK-NEXT: spyre.kernel.tile %{{.*}} dim 1 at %[[J]] * 64 : {{.*}} to !spyre.tensor<[128, 64] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
      %dp = spyre.kernel.tile %dt dim 1 at %j * 64 : !rows to !part
      %op = spyre.kernel.tile %ot dim 1 at %j * 64 : !rows to !part
      // CHECK: "exp" [m = 128, n = 64] ins(%{{.*}}[m, n]
      spyre.kernel.compute "exp" [m = 128, n = 64] ins(%dp[m, n] : !part) outs(%op[m, n] : !part)
    }
  }
  %r = spyre.kernel.from_device %o : !t to tensor<512x128xf16>
  func.return %r : tensor<512x128xf16>
}

!block = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>

// CHECK-LABEL: func.func @placed_by_host
func.func @placed_by_host(%x: tensor<512x128xf16>, %at: tensor<1xi64>) {
  %d = spyre.kernel.to_device %x : tensor<512x128xf16> to !t
  // CHECK: spyre.kernel.block_number of %{{.*}} from_end, blocks of 64 in 512 : tensor<1xi64>
  // GENERIC: "spyre.kernel.block_number"(%{{.*}}) <{from_end, size = 64 : i64, extent = 512 : i64}> : (tensor<1xi64>) -> index
  %c = spyre.kernel.block_number of %at from_end, blocks of 64 in 512 : tensor<1xi64>
  // CHECK: %[[B:.*]] = spyre.kernel.block_number of %{{.*}}, blocks of 64 in 512 : tensor<1xi64>
  // GENERIC: "spyre.kernel.block_number"(%{{.*}}) <{size = 64 : i64, extent = 512 : i64}> : (tensor<1xi64>) -> index
  %b = spyre.kernel.block_number of %at, blocks of 64 in 512 : tensor<1xi64>
  // CHECK-NEXT: spyre.kernel.tile %{{.*}} dim 0 at %[[B]] * 64
  %p = spyre.kernel.tile %d dim 0 at %b * 64 : !t to !block
  spyre.kernel.compute "exp" [m = 64, n = 128] ins(%p[m, n] : !block) outs(%p[m, n] : !block)
  func.return
}
