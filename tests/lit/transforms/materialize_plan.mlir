// RUN: spyre-opt -p materialize-plan %s | filecheck %s
// RUN: spyre-opt -p materialize-plan %s | spyre-opt -p materialize-plan | filecheck %s
// RUN: spyre-opt %s --to spyre.kernel | filecheck %s --check-prefix PLACED

// Two kernels in a loop of four trips over rows, divided as their notes say; what goes from one to the other is in the
// scratchpads. The third is in no loop.

!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {spyre.loops = [{trips = [4], us = 1.5 : f64}]} {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf32> to !t
  %1 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64, n = 128] ins(%0[m, n] : !t) outs(%1[m, n] : !t) attributes {spyre.plan = {loop = 0, over = ["m"], runs = [{division = #spyre.division<m over 16, n>, place = "lx"}]}}
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "neg" [a = 64, b = 128] ins(%1[a, b] : !t) outs(%2[a, b] : !t) attributes {spyre.plan = {loop = 0, over = ["a"], runs = [{division = #spyre.division<a over 16, b>}]}}
  %3 = spyre.kernel.alloc : !t
  spyre.kernel.compute "relufwd" [m = 64 over 32, n = 128] ins(%2[m, n] : !t) outs(%3[m, n] : !t)
  %4 = spyre.kernel.from_device %3 : !t to tensor<64x128xf32>
  func.return %4 : tensor<64x128xf32>
}

// CHECK-LABEL: func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
// CHECK:      %[[OUT:.*]] = spyre.kernel.alloc : !spyre.tensor<[64, 128]
// CHECK-NEXT: arith.constant 0
// CHECK-NEXT: arith.constant 4
// CHECK-NEXT: arith.constant 1
// CHECK-NEXT: scf.for %[[I:.*]] =
// CHECK-NEXT:   %[[X:.*]] = spyre.kernel.tile %{{.*}} dim 0 at %[[I]] * 16
// CHECK-NEXT:   %[[EXP:.*]] = spyre.kernel.alloc : !spyre.tensor<[16, 128] {{.*}}, lx>
// CHECK-NEXT:   "exp" [m = 16 over 16, n = 128] ins(%[[X]][m, n]{{.*}}) outs(%[[EXP]][m, n]{{[^)]*}}){{$}}
// CHECK-NEXT:   %[[Y:.*]] = spyre.kernel.tile %[[OUT]] dim 0 at %[[I]] * 16
// CHECK-NEXT:   "neg" [a = 16 over 16, b = 128] ins(%[[EXP]][a, b]{{.*}}) outs(%[[Y]][a, b]{{[^)]*}}){{$}}
// CHECK-NEXT: }
// CHECK:      "relufwd" [m = 64 over 32, n = 128] ins(%[[OUT]][m, n]

// PLACED: scf.for
// PLACED:   spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// PLACED:   "neg"
