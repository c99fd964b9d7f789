// RUN: spyre-opt -p assign-pool %s | filecheck %s

// %1 lives for the whole loop, although its tile is used in the middle of a trip only; %2 is new in every trip; %4
// takes the bytes of both.

!t = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, extents [4, 64], hbm>
!q = !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = spyre.kernel.to_device %x : tensor<4x64xf32> to !t
  %1 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 4, n = 64] ins(%0[m, n] : !t) outs(%1[m, n] : !t)
  scf.for %i = %c0 to %c2 step %c1 {
    %p = spyre.kernel.tile %1 dim 0 at %i * 2 : !t to !p
    %2 = spyre.kernel.alloc : !q
    spyre.kernel.compute "neg" [m = 2, n = 64] ins(%p[m, n] : !p) outs(%2[m, n] : !q)
    %3 = spyre.kernel.alloc : !q
    spyre.kernel.compute "abs" [m = 2, n = 64] ins(%2[m, n] : !q) outs(%3[m, n] : !q)
  }
  %4 = spyre.kernel.alloc : !t
  spyre.kernel.compute "abs" [m = 4, n = 64] ins(%0[m, n] : !t) outs(%4[m, n] : !t)
  %5 = spyre.kernel.alloc : !t
  spyre.kernel.compute "abs" [m = 4, n = 64] ins(%4[m, n] : !t) outs(%5[m, n] : !t)
  %6 = spyre.kernel.from_device %5 : !t to tensor<4x64xf32>
  func.return %6 : tensor<4x64xf32>
}

// CHECK:      %[[A:.*]] = spyre.kernel.alloc at 0 : i64
// CHECK:      scf.for
// CHECK-NEXT:   spyre.kernel.tile %[[A]]
// CHECK-NEXT:   %[[B:.*]] = spyre.kernel.alloc at 512 : i64
// CHECK-NEXT:   "neg"
// CHECK-NEXT:   %[[C:.*]] = spyre.kernel.alloc at 768 : i64
// CHECK-NEXT:   "abs"
// CHECK-DAG:    spyre.kernel.free %[[B]]
// CHECK-DAG:    spyre.kernel.free %[[C]]
// CHECK:      }
// CHECK-NEXT: spyre.kernel.free %[[A]]
// CHECK-NEXT: %[[D:.*]] = spyre.kernel.alloc at 0 : i64
