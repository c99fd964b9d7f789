// RUN: spyre-opt -p assign-pool %s | filecheck %s

// Intermediate buffers get the lowest free bytes for as long as they live; what the host reads stays outside.

!t = !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %0 = spyre.kernel.to_device %x : tensor<2x64xf32> to !t
  %1 = spyre.kernel.alloc : !t
  %2 = spyre.kernel.alloc : !t
  %3 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 2, n = 64] ins(%0[m, n] : !t) outs(%1[m, n] : !t)
  spyre.kernel.compute "neg" [m = 2, n = 64] ins(%1[m, n] : !t) outs(%2[m, n] : !t)
  %4 = spyre.kernel.alloc : !t
  spyre.kernel.compute "abs" [m = 2, n = 64] ins(%2[m, n] : !t) outs(%4[m, n] : !t)
  spyre.kernel.compute "abs" [m = 2, n = 64] ins(%4[m, n] : !t) outs(%3[m, n] : !t)
  %5 = spyre.kernel.from_device %3 : !t to tensor<2x64xf32>
  func.return %5 : tensor<2x64xf32>
}

// CHECK:      func.func @main
// CHECK-NEXT: spyre.kernel.to_device
// CHECK-NEXT: %[[A:.*]] = spyre.kernel.alloc at 0 : i64
// CHECK-NEXT: %[[B:.*]] = spyre.kernel.alloc at 256 : i64
// CHECK-NEXT: %[[OUT:.*]] = spyre.kernel.alloc : !spyre.tensor
// CHECK-NEXT: "exp"
// CHECK-NEXT: "neg"
// CHECK-NEXT: spyre.kernel.free %[[A]]
// CHECK-NEXT: %[[C:.*]] = spyre.kernel.alloc at 0 : i64
// CHECK-NEXT: "abs"
// CHECK-NEXT: spyre.kernel.free %[[B]]
// CHECK-NEXT: "abs"
// CHECK-NEXT: spyre.kernel.free %[[C]]
// CHECK-NEXT: spyre.kernel.from_device %[[OUT]]
