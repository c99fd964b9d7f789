// RUN: spyre-opt -p place-lx %s | filecheck %s

// The running sum is in use for the whole loop, so nothing of a trip takes its 4096 bytes; the exponentials are new in
// every trip. A tile that two ops of a trip read is copied, the sum's start value is not: one op reads it once.

!t = !spyre.tensor<[256, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!p = !spyre.tensor<[64, 64] x SEN169_FP16, order [0, 1], stick 1, extents [256, 64], hbm>
!q = !spyre.tensor<[64, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>

func.func @main(%x: tensor<256x64xf32>, %s: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = spyre.kernel.to_device %x : tensor<256x64xf32> to !t
  %1 = spyre.kernel.to_device %s : tensor<64x64xf32> to !q
  %2 = spyre.kernel.alloc : !q
  spyre.kernel.compute "identity" [m = 64 over 2, n = 64] ins(%1[m, n] : !q) outs(%2[m, n] : !q)
  scf.for %i = %c0 to %c4 step %c1 {
    %p = spyre.kernel.tile %0 dim 0 at %i * 64 : !t to !p
    %3 = spyre.kernel.alloc : !q
    spyre.kernel.compute "exp" [m = 64 over 2, n = 64] ins(%p[m, n] : !p) outs(%3[m, n] : !q)
    %4 = spyre.kernel.alloc : !q
    spyre.kernel.compute "mul" [m = 64 over 2, n = 64] ins(%3[m, n] : !q, %p[m, n] : !p) outs(%4[m, n] : !q)
    spyre.kernel.compute "add" [m = 64 over 2, n = 64] ins(%2[m, n] : !q, %4[m, n] : !q) outs(%2[m, n] : !q)
  }
  %5 = spyre.kernel.alloc : !q
  spyre.kernel.compute "neg" [m = 64 over 2, n = 64] ins(%2[m, n] : !q) outs(%5[m, n] : !q)
  %6 = spyre.kernel.from_device %5 : !q to tensor<64x64xf32>
  func.return %6 : tensor<64x64xf32>
}

// CHECK:      %[[SUM:.*]] = spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// CHECK-NEXT: "identity"
// CHECK-NEXT: scf.for
// CHECK-NEXT:   %[[P:.*]] = spyre.kernel.tile
// CHECK-NEXT:   spyre.kernel.alloc at {{4096|8192}} : i64 : {{.*}}, lx>
// CHECK-NEXT:   %[[X:.*]] = spyre.kernel.alloc at {{4096|8192}} : i64 : {{.*}}, lx>
// CHECK-NEXT:   "identity" {{.*}} ins(%[[P]]{{.*}} outs(%[[X]]
// CHECK-NEXT:   "exp" {{.*}} ins(%[[X]]
// CHECK:        "mul"
// CHECK:        "add" {{.*}} outs(%[[SUM]]
// CHECK-NOT:    identity

// The next trip reads %2 again, so the sum that is computed from it does not take its place, although nothing behind
// it uses %2. The tile is read once a trip: a copy of it would not pay.
func.func @kept(%x: tensor<256x64xf32>, %s: tensor<64x64xf32>) -> tensor<256x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = spyre.kernel.to_device %x : tensor<256x64xf32> to !t
  %1 = spyre.kernel.to_device %s : tensor<64x64xf32> to !q
  %2 = spyre.kernel.alloc : !q
  spyre.kernel.compute "exp" [m = 64 over 2, n = 64] ins(%1[m, n] : !q) outs(%2[m, n] : !q)
  %4 = spyre.kernel.alloc : !t
  scf.for %i = %c0 to %c4 step %c1 {
    %p = spyre.kernel.tile %0 dim 0 at %i * 64 : !t to !p
    %r = spyre.kernel.tile %4 dim 0 at %i * 64 : !t to !p
    %3 = spyre.kernel.alloc : !q
    spyre.kernel.compute "add" [m = 64 over 2, n = 64] ins(%p[m, n] : !p, %2[m, n] : !q) outs(%3[m, n] : !q)
    spyre.kernel.compute "neg" [m = 64 over 2, n = 64] ins(%3[m, n] : !q) outs(%r[m, n] : !p)
  }
  %5 = spyre.kernel.from_device %4 : !t to tensor<256x64xf32>
  func.return %5 : tensor<256x64xf32>
}

// CHECK-LABEL: func.func @kept
// CHECK:       spyre.kernel.alloc at 4096 : i64 : {{.*}}, lx>
// CHECK-NEXT:  "exp"
// CHECK:       scf.for
// CHECK-NEXT:  spyre.kernel.tile
// CHECK-NEXT:  spyre.kernel.tile
// CHECK-NEXT:  spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// CHECK-NEXT:  "add"
