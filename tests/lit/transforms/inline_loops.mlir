// RUN: spyre-opt -p inline-loops %s | filecheck %s

// A loop over slices stands where it is called, in front of the kernels that read what it carries.

!t = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!x = !spyre.tensor<[9, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>
!e = !spyre.tensor<[1, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, extents [9, 4, 64], hbm>

func.func @main(%h: tensor<4x64xf32>, %x: tensor<9x4x64xf32>) -> tensor<4x64xf32> {
  %0 = spyre.kernel.to_device %h : tensor<4x64xf32> to !t
  %1 = spyre.kernel.to_device %x : tensor<9x4x64xf32> to !x
  func.call @steps(%0, %1) : (!t, !x) -> ()
  %2 = spyre.kernel.from_device %0 : !t to tensor<4x64xf32>
  func.return %2 : tensor<4x64xf32>
}
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

// CHECK:      %[[H:.*]] = spyre.kernel.to_device %h :
// CHECK-NEXT: %[[X:.*]] = spyre.kernel.to_device %x :
// CHECK:      scf.for %[[I:.*]] =
// CHECK-NEXT: spyre.kernel.tile %[[X]] dim 0 at %[[I]] * -1 from 8 :
// CHECK-NEXT: spyre.kernel.compute "add" [m = 4, n = 64] ins(%[[H]][m, n] :
// CHECK-NEXT: }
// CHECK-NEXT: spyre.kernel.from_device %[[H]]
// CHECK-NOT:  func.call
// CHECK-NOT:  @steps
