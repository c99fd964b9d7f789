// RUN: spyre-opt -p carry-in-place %s | filecheck %s

// Two steps of a trip: the second reads what the first made, and writes what the loop carries. Entries are written at once.

!t = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!x = !spyre.tensor<[8, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>
!e = !spyre.tensor<[1, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, extents [8, 4, 64], hbm>
!y = !spyre.tensor<[1, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>

func.func private @steps(%h: !t, %x: !x, %y: !x) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 4 : index
  %2 = arith.constant 1 : index
  scf.for %i = %0 to %1 step %2 {
    %a0 = spyre.kernel.alloc : !t
    spyre.kernel.compute "tanh" [m = 4, n = 64] ins(%h[m, n] : !t) outs(%a0[m, n] : !t)
    %b0 = spyre.kernel.alloc : !y
    spyre.kernel.compute "exp" [m = 4, n = 64] ins(%a0[m, n] : !t) outs(%b0[0, m, n] : !y)
    %c0 = spyre.kernel.tile %y dim 0 at %i * 2 : !x to !e
    spyre.kernel.compute "identity" [m = 4, n = 64] ins(%b0[0, m, n] : !y) outs(%c0[0, m, n] : !e)
    spyre.kernel.compute "identity" [m = 4, n = 64] ins(%a0[m, n] : !t) outs(%h[m, n] : !t)
    %a1 = spyre.kernel.alloc : !t
    spyre.kernel.compute "relufwd" [m = 4, n = 64] ins(%h[m, n] : !t) outs(%a1[m, n] : !t)
    spyre.kernel.compute "identity" [m = 4, n = 64] ins(%a1[m, n] : !t) outs(%h[m, n] : !t)
  }
  func.return
}

// CHECK:      scf.for %[[I:.*]] =
// CHECK-NEXT: %[[A:.*]] = spyre.kernel.alloc
// CHECK-NEXT: spyre.kernel.compute "tanh" [m = 4, n = 64] ins(%h[m, n] : {{.*}}) outs(%[[A]][m, n]
// CHECK-NEXT: %[[C:.*]] = spyre.kernel.tile %y dim 0 at %[[I]] * 2 :
// CHECK-NEXT: spyre.kernel.compute "exp" [m = 4, n = 64] ins(%[[A]][m, n] : {{.*}}) outs(%[[C]][0, m, n]
// CHECK-NEXT: spyre.kernel.compute "relufwd" [m = 4, n = 64] ins(%[[A]][m, n] : {{.*}}) outs(%h[m, n]
// CHECK-NEXT: }
