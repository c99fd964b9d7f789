// RUN: spyre-opt -p keep-on-device %s | filecheck %s

// A loop carries a device tensor, and what is the same in every trip is sent once.

!t = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!w = !spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>
!p = !spyre.tensor<[] x SEN169_FP16, order [unit], stick unit, hbm>

func.func @main(%x: tensor<4x64xf32>, %w: tensor<64xf32>) -> tensor<4x64xf32> {
  %r = control.while_loop @goes_on do @step(%x, %w) : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32>
  func.return %r : tensor<4x64xf32>
}
func.func private @goes_on(%c: tensor<4x64xf32>, %w: tensor<64xf32>) -> tensor<i1> {
  %0 = spyre.kernel.to_device %c : tensor<4x64xf32> to !t
  %1 = spyre.kernel.alloc : !p
  spyre.kernel.compute "max" [d0 = 4, d1 = 64] ins(%0[d0, d1] : !t) outs(%1[] : !p)
  %2 = spyre.kernel.from_device %1 : !p to tensor<i1>
  func.return %2 : tensor<i1>
}
func.func private @step(%c: tensor<4x64xf32>, %w: tensor<64xf32>) -> tensor<4x64xf32> {
  %0 = spyre.kernel.to_device %c : tensor<4x64xf32> to !t
  %1 = spyre.kernel.to_device %w zero_padding : tensor<64xf32> to !w
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "add" [d0 = 4, d1 = 64] ins(%0[d0, d1] : !t, %1[d1] : !w) outs(%2[d0, d1] : !t)
  %3 = spyre.kernel.from_device %2 : !t to tensor<4x64xf32>
  func.return %3 : tensor<4x64xf32>
}

// CHECK:      func.func @main
// CHECK-NEXT: %[[X:.*]] = spyre.kernel.to_device %x :
// CHECK-NEXT: %[[W:.*]] = spyre.kernel.to_device %w zero_padding :
// CHECK-NEXT: %[[R:.*]] = control.while_loop @goes_on do @step(%[[X]], %[[W]]) : (!spyre.tensor
// CHECK-NEXT: %[[HOST:.*]] = spyre.kernel.from_device %[[R]] :
// CHECK-NEXT: func.return %[[HOST]] : tensor<4x64xf32>
// CHECK:      func.func private @goes_on
// CHECK-NEXT: spyre.kernel.alloc
// CHECK-NEXT: "max"
// CHECK-NEXT: spyre.kernel.from_device
// CHECK:      func.func private @step
// CHECK-NEXT: %[[NEXT:.*]] = spyre.kernel.alloc
// CHECK-NEXT: "add"
// CHECK-NEXT: func.return %[[NEXT]] : !spyre.tensor
