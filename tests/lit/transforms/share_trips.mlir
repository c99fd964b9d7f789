// RUN: spyre-opt -p share-trips{steps=2} %s | filecheck %s

// Nine steps are four trips of two, and one of one; entries run backwards. The loop of a program stays as it is.

!t = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!x = !spyre.tensor<[9, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>
!e = !spyre.tensor<[1, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, extents [9, 4, 64], hbm>

func.func private @steps(%h: !t, %x: !x) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 9 : index
  %2 = arith.constant 1 : index
  scf.for %i = %0 to %1 step %2 {
    %3 = spyre.kernel.tile %x dim 0 at %i * -1 from 8 : !x to !e
    spyre.kernel.compute "add" [m = 4, n = 64] ins(%h[m, n] : !t, %3[0, m, n] : !e) outs(%h[m, n] : !t)
  }
  func.return
}
func.func @main(%a: tensor<9x4x64xf32>) {
  %x = spyre.kernel.to_device %a : tensor<9x4x64xf32> to !x
  %0 = arith.constant 0 : index
  %1 = arith.constant 9 : index
  %2 = arith.constant 1 : index
  scf.for %i = %0 to %1 step %2 {
    %3 = spyre.kernel.tile %x dim 0 at %i * 1 : !x to !e
    spyre.kernel.compute "abs" [m = 4, n = 64] ins(%3[0, m, n] : !e) outs(%3[0, m, n] : !e)
  }
  func.return
}

// CHECK-LABEL: func.func private @steps
// CHECK:       %[[TRIPS:.*]] = arith.constant 4 : index
// CHECK:       scf.for %[[I:.*]] = %{{.*}} to %[[TRIPS]] step
// CHECK-NEXT:    %[[A:.*]] = spyre.kernel.tile %x dim 0 at %[[I]] * -2 from 8 :
// CHECK-NEXT:    spyre.kernel.compute "add" [m = 4, n = 64] ins(%h[m, n] : {{.*}}, %[[A]][0, m, n]
// CHECK-NEXT:    %[[B:.*]] = spyre.kernel.tile %x dim 0 at %[[I]] * -2 from 7 :
// CHECK-NEXT:    spyre.kernel.compute "add" [m = 4, n = 64] ins(%h[m, n] : {{.*}}, %[[B]][0, m, n]
// CHECK-NEXT:  }
// CHECK:       %[[REST:.*]] = arith.constant 1 : index
// CHECK:       scf.for %[[J:.*]] = %{{.*}} to %[[REST]] step
// CHECK-NEXT:    spyre.kernel.tile %x dim 0 at %[[J]] * -1 :
// CHECK-NEXT:    spyre.kernel.compute "add"
// CHECK-NEXT:  }
// CHECK-NEXT:  func.return
// CHECK-LABEL: func.func @main
// CHECK:       scf.for %[[I:.*]] =
// CHECK-NEXT:    spyre.kernel.tile %{{.*}} dim 0 at %[[I]] * 1 :
// CHECK-NEXT:    spyre.kernel.compute "abs"
// CHECK-NEXT:  }
// CHECK-NEXT:  func.return
