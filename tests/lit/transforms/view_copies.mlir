// RUN: spyre-opt -p view-copies %s | filecheck %s
// RUN: spyre-opt -p 'view-copies{numbers="pe_batched_one_input_mac_per_ns_per_core=1140"}' %s | filecheck %s --check-prefix RATE

// Columns of 4 patches of 16 are the rows of %t; the copy puts the 16 of a patch beside each other, which in order [1, 2, 0] they
// are already. The rows of the product then lie inside of its batch: its loops change places.
!S = !spyre.tensor<[64, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 0, hbm>
!T = !spyre.tensor<[64, 4, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!C = !spyre.tensor<[4, 4, 1024] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!W = !spyre.tensor<[1024, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!Y = !spyre.tensor<[4, 4, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>

func.func @patches(%x: tensor<64x4x64xf16>, %w: tensor<1024x64xf16>) -> tensor<4x4x64xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x4x64xf16> to !S
  %1 = spyre.kernel.to_device %w : tensor<1024x64xf16> to !W
  %t = spyre.kernel.alloc : !T
  spyre.kernel.restickify [i = 64, j = 4, l = 64] ins(%0[i, j, l] : !S) outs(%t[i, j, l] : !T)
  %c = spyre.kernel.alloc : !C
  spyre.kernel.compute "identity" [b = 4, m = 4, k = 16, l = 64] ins(%t[m * 16 + k, b, l] : !T) outs(%c[b, m, k * 64 + l] : !C)
  %y = spyre.kernel.alloc : !Y
  spyre.kernel.compute "batchmatmul" [b = 4, m = 4, n = 64, k = 1024] ins(%c[b, m, k] : !C, %1[k, n] : !W) outs(%y[b, m, n] : !Y)
  %2 = spyre.kernel.from_device %y : !Y to tensor<4x4x64xf16>
  func.return %2 : tensor<4x4x64xf16>
}

// CHECK-LABEL: func.func @patches
// CHECK: %[[T:.*]] = spyre.kernel.alloc : !spyre.tensor<[64, 4, 64]
// CHECK-NEXT: %[[V:.*]] = spyre.kernel.view %[[T]] : {{.*}} to !spyre.tensor<[4, 4, 1024] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>
// CHECK-NEXT: spyre.kernel.restickify {{.*}} outs(%[[T]][i, j, l]
// CHECK-NOT: identity
// CHECK: "batchmatmul" [m = 4, b = 4, n = 64, k = 1024] ins(%[[V]][b, m, k]

// A second kernel reads the copy, which may be in the scratchpads for both.
func.func @read_twice(%x: tensor<64x4x64xf16>, %w: tensor<1024x64xf16>) -> (tensor<4x4x64xf16>, tensor<4x4x1024xf16>) {
  %0 = spyre.kernel.to_device %x : tensor<64x4x64xf16> to !S
  %1 = spyre.kernel.to_device %w : tensor<1024x64xf16> to !W
  %t = spyre.kernel.alloc : !T
  spyre.kernel.restickify [i = 64, j = 4, l = 64] ins(%0[i, j, l] : !S) outs(%t[i, j, l] : !T)
  %c = spyre.kernel.alloc : !C
  spyre.kernel.compute "identity" [b = 4, m = 4, k = 16, l = 64] ins(%t[m * 16 + k, b, l] : !T) outs(%c[b, m, k * 64 + l] : !C)
  %y = spyre.kernel.alloc : !Y
  spyre.kernel.compute "batchmatmul" [b = 4, m = 4, n = 64, k = 1024] ins(%c[b, m, k] : !C, %1[k, n] : !W) outs(%y[b, m, n] : !Y)
  %e = spyre.kernel.alloc : !C
  spyre.kernel.compute "exp" [b = 4, m = 4, k = 1024] ins(%c[b, m, k] : !C) outs(%e[b, m, k] : !C)
  %2 = spyre.kernel.from_device %y : !Y to tensor<4x4x64xf16>
  %3 = spyre.kernel.from_device %e : !C to tensor<4x4x1024xf16>
  func.return %2, %3 : tensor<4x4x64xf16>, tensor<4x4x1024xf16>
}

// CHECK-LABEL: func.func @read_twice
// CHECK-NOT: spyre.kernel.view
// CHECK: "identity"

// The copy begins at the second column, where no buffer begins.
!H = !spyre.tensor<[4, 4, 512] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!U = !spyre.tensor<[512, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @from_the_second(%x: tensor<64x4x64xf16>, %w: tensor<512x64xf16>) -> tensor<4x4x64xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x4x64xf16> to !S
  %1 = spyre.kernel.to_device %w : tensor<512x64xf16> to !U
  %t = spyre.kernel.alloc : !T
  spyre.kernel.restickify [i = 64, j = 4, l = 64] ins(%0[i, j, l] : !S) outs(%t[i, j, l] : !T)
  %c = spyre.kernel.alloc : !H
  spyre.kernel.compute "identity" [b = 4, m = 4, k = 8, l = 64] ins(%t[m * 16 + k + 1, b, l] : !T) outs(%c[b, m, k * 64 + l] : !H)
  %y = spyre.kernel.alloc : !Y
  spyre.kernel.compute "batchmatmul" [b = 4, m = 4, n = 64, k = 512] ins(%c[b, m, k] : !H, %1[k, n] : !U) outs(%y[b, m, n] : !Y)
  %2 = spyre.kernel.from_device %y : !Y to tensor<4x4x64xf16>
  func.return %2 : tensor<4x4x64xf16>
}

// CHECK-LABEL: func.func @from_the_second
// CHECK-NOT: spyre.kernel.view
// CHECK: "identity"

// Each row of patches has weights of its own: a batch, which would lie inside of the rows, at a lower rate.
!S8 = !spyre.tensor<[128, 8, 64] x SEN169_FP16, order [1, 2, 0], stick 0, hbm>
!T8 = !spyre.tensor<[128, 8, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!C8 = !spyre.tensor<[8, 8, 1024] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!W8 = !spyre.tensor<[8, 1024, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!Y8 = !spyre.tensor<[8, 8, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>

func.func @own_weights(%x: tensor<128x8x64xf16>, %w: tensor<8x1024x64xf16>) -> tensor<8x8x64xf16> {
  %0 = spyre.kernel.to_device %x : tensor<128x8x64xf16> to !S8
  %1 = spyre.kernel.to_device %w : tensor<8x1024x64xf16> to !W8
  %t = spyre.kernel.alloc : !T8
  spyre.kernel.restickify [i = 128, j = 8, l = 64] ins(%0[i, j, l] : !S8) outs(%t[i, j, l] : !T8)
  %c = spyre.kernel.alloc : !C8
  spyre.kernel.compute "identity" [b = 8, m = 8, k = 16, l = 64] ins(%t[m * 16 + k, b, l] : !T8) outs(%c[b, m, k * 64 + l] : !C8)
  %y = spyre.kernel.alloc : !Y8
  spyre.kernel.compute "batchmatmul" [b = 8, m = 8, n = 64, k = 1024] ins(%c[b, m, k] : !C8, %1[b, k, n] : !W8) outs(%y[b, m, n] : !Y8)
  %2 = spyre.kernel.from_device %y : !Y8 to tensor<8x8x64xf16>
  func.return %2 : tensor<8x8x64xf16>
}

// CHECK-LABEL: func.func @own_weights
// CHECK-NOT: spyre.kernel.view
// CHECK: "identity"

// RATE-LABEL: func.func @own_weights
// RATE: spyre.kernel.view
