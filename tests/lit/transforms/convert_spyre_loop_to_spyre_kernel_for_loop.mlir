// RUN: spyre-opt -p convert-spyre-loop-to-spyre-kernel %s | filecheck %s

// The caller fills what a loop carries, and the last kernel of a trip writes it; backwards, the first trip has the last entries.

func.func @main(%h: tensor<4x64xf32>, %x: tensor<9x4x64xf32>) -> (tensor<4x64xf32>, tensor<9x4x64xf32>) {
  %0, %1 = control.for_loop @step trips 9 carrying 1 slicing 1 backwards (%h, %x) : (tensor<4x64xf32>, tensor<9x4x64xf32>) -> (tensor<4x64xf32>, tensor<9x4x64xf32>)
  func.return %0, %1 : tensor<4x64xf32>, tensor<9x4x64xf32>
}
func.func private @step(%c: tensor<4x64xf32>, %e: tensor<1x4x64xf32>) -> (tensor<4x64xf32>, tensor<1x4x64xf32>) {
  %0 = spyre.loop.nest [m = 4, n = 64] ins(%c[m, n] : tensor<4x64xf32>, %e[0, m, n] : tensor<1x4x64xf32>) -> [m, n] : tensor<4x64xf32> {
  ^bb0(%1: f32, %2: f32):
    %3 = arith.addf %1, %2 : f32
    spyre.loop.yield %3 : f32
  }
  func.return %0, %e : tensor<4x64xf32>, tensor<1x4x64xf32>
}

// CHECK:      func.func @main
// CHECK:      %[[H:.*]] = spyre.kernel.to_device %h :
// CHECK:      %[[X:.*]] = spyre.kernel.to_device %x :
// CHECK:      %[[Y:.*]] = spyre.kernel.alloc : !spyre.tensor<[9, 4, 64]
// CHECK-NEXT: func.call @step(%[[H]], %[[X]], %[[Y]])
// CHECK:      func.func private @step(%[[C:[^:]*]]: {{.*}}, %[[E:[^:]*]]: !spyre.tensor<[9, 4, 64] {{.*}}, %[[R:[^:]*]]: !spyre.tensor<[9, 4, 64]
// CHECK:      scf.for %[[I:.*]] =
// CHECK:      spyre.kernel.tile %[[E]] dim 0 at %[[I]] * -1 from 8 :
// CHECK:      "add" {{.*}} ins(%[[C]][m, n]
// CHECK:      spyre.kernel.tile %[[R]] dim 0 at %[[I]] * -1 from 8 :
// CHECK:      "identity"
// CHECK:      "identity" {{.*}} outs(%[[C]][
// CHECK-NEXT: }
