// RUN: spyre-opt -p plan,materialize-plan %s | filecheck %s

// One matrix times eight others, which is copied for each of them: a loop takes one of them at a time, and its product
// reads the matrix itself. Its columns are then one loop.

!x = !spyre.tensor<[512, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>
!t = !spyre.tensor<[8, 512, 1024] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!w = !spyre.tensor<[8, 1024, 1024] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>

func.func @main(%x: tensor<512x1024xf16>, %w: tensor<8x1024x1024xf16>) -> tensor<8x512x1024xf16> {
  %0 = spyre.kernel.to_device %x : tensor<512x1024xf16> to !x
  %1 = spyre.kernel.to_device %w : tensor<8x1024x1024xf16> to !w
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "identity" [a = 8, b = 512, c = 1024] ins(%0[b, c] : !x) outs(%2[a, b, c] : !t)
  %3 = spyre.kernel.alloc : !t
  spyre.kernel.compute "batchmatmul" [e = 8, m = 512, n = 1024, k = 1024] ins(%2[e, m, k] : !t, %1[e, k, n] : !w) outs(%3[e, m, n] : !t)
  %4 = spyre.kernel.alloc : !t
  spyre.kernel.compute "silu" [a = 8, b = 512, c = 1024] ins(%3[a, b, c] : !t) outs(%4[a, b, c] : !t)
  %5 = spyre.kernel.from_device %4 : !t to tensor<8x512x1024xf16>
  func.return %5 : tensor<8x512x1024xf16>
}

// CHECK:      %[[X:.*]] = spyre.kernel.to_device %x
// CHECK:      %[[W:.*]] = spyre.kernel.to_device %w
// CHECK-NOT:  "identity"
// CHECK:      scf.for %[[I:.*]] =
// CHECK-NEXT:   %[[PART:.*]] = spyre.kernel.tile %[[W]] dim 0 at %[[I]] * 1
// CHECK-NEXT:   %[[Y:.*]] = spyre.kernel.alloc : !spyre.tensor<[1, 512, 1024]
// CHECK-NEXT:   "batchmatmul" [m = 512 over 4, n = 1024 over 8, k = 1024] ins(%[[X]][m, k]{{.*}}, %[[PART]][0, k, n]{{.*}} outs(%[[Y]][0, m, n]
// CHECK-NEXT:   %[[OUT:.*]] = spyre.kernel.tile {{.*}} dim 0 at %[[I]] * 1
// CHECK-NEXT:   "silu" {{.*}} ins(%[[Y]][a, b, c]{{.*}} outs(%[[OUT]][a, b, c]
// CHECK-NEXT: }
// CHECK-NEXT: spyre.kernel.from_device
