// RUN: spyre-opt -p forward-results %s | filecheck %s
// RUN: spyre-opt -p 'forward-results{numbers="hbm_turnaround_ns_per_byte=1"}' %s | filecheck %s --check-prefix SLOW
!A = !spyre.tensor<[56, 56, 1152] x SEN169_FP16, order [0, 1, 2], stick 2, lx>
!B = !spyre.tensor<[1152, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!T = !spyre.tensor<[56, 56, 128] x SEN169_FP16, order [0, 1, 2], stick 2, lx>
!R = !spyre.tensor<[128, 56, 56] x SEN169_FP16, order [1, 2, 0], stick 0, hbm>
!X = !spyre.tensor<[56, 56, 1152] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>

// 15 us of arithmetic cover the reading of the weights and the writing of the result.
func.func @covered(%x: tensor<56x56x1152xf16>, %w: tensor<1152x128xf16>) -> tensor<128x56x56xf16> {
  %0 = spyre.kernel.to_device %x : tensor<56x56x1152xf16> to !X
  %b = spyre.kernel.to_device %w : tensor<1152x128xf16> to !B
  %a = spyre.kernel.alloc : !A
  spyre.kernel.compute "exp" [b = 56 over 28, m = 56, k = 1152] ins(%0[b, m, k] : !X) outs(%a[b, m, k] : !A)
  %t = spyre.kernel.alloc : !T
  spyre.kernel.compute "batchmatmul" [b = 56 over 28, m = 56, n = 128, k = 1152] ins(%a[b, m, k] : !A, %b[k, n] : !B) outs(%t[b, m, n] : !T)
  %r = spyre.kernel.alloc : !R
  spyre.kernel.compute "identity" [c = 128, y = 56 over 28, x = 56] ins(%t[y, x, c] : !T) outs(%r[c, y, x] : !R)
  %1 = spyre.kernel.from_device %r : !R to tensor<128x56x56xf16>
  func.return %1 : tensor<128x56x56xf16>
}

// CHECK-LABEL: func.func @covered
// CHECK: %[[R:.*]] = spyre.kernel.alloc : !spyre.tensor<[128, 56, 56]
// CHECK-NEXT: "batchmatmul" {{.*}} outs(%[[R]][n, b, m] :
// CHECK-NOT: identity
// SLOW-LABEL: func.func @covered
// SLOW: "identity" [c = 128

!A2 = !spyre.tensor<[56, 56, 128] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!B2 = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>

// The product waits for what it reads, and writes would come between.
func.func @waiting(%x: tensor<56x56x128xf16>, %w: tensor<128x128xf16>) -> tensor<128x56x56xf16> {
  %a = spyre.kernel.to_device %x : tensor<56x56x128xf16> to !A2
  %b = spyre.kernel.to_device %w : tensor<128x128xf16> to !B2
  %t = spyre.kernel.alloc : !T
  spyre.kernel.compute "batchmatmul" [b = 56 over 28, m = 56, n = 128, k = 128] ins(%a[b, m, k] : !A2, %b[k, n] : !B2) outs(%t[b, m, n] : !T)
  %r = spyre.kernel.alloc : !R
  spyre.kernel.compute "identity" [c = 128, y = 56 over 28, x = 56] ins(%t[y, x, c] : !T) outs(%r[c, y, x] : !R)
  %1 = spyre.kernel.from_device %r : !R to tensor<128x56x56xf16>
  func.return %1 : tensor<128x56x56xf16>
}

// CHECK-LABEL: func.func @waiting
// CHECK: "identity" [c = 128

// Another kernel reads the result of the product.
func.func @read_besides(%x: tensor<56x56x1152xf16>, %w: tensor<1152x128xf16>) -> (tensor<128x56x56xf16>, tensor<128x56x56xf16>) {
  %0 = spyre.kernel.to_device %x : tensor<56x56x1152xf16> to !X
  %b = spyre.kernel.to_device %w : tensor<1152x128xf16> to !B
  %a = spyre.kernel.alloc : !A
  spyre.kernel.compute "exp" [b = 56 over 28, m = 56, k = 1152] ins(%0[b, m, k] : !X) outs(%a[b, m, k] : !A)
  %t = spyre.kernel.alloc : !T
  spyre.kernel.compute "batchmatmul" [b = 56 over 28, m = 56, n = 128, k = 1152] ins(%a[b, m, k] : !A, %b[k, n] : !B) outs(%t[b, m, n] : !T)
  %r = spyre.kernel.alloc : !R
  spyre.kernel.compute "identity" [c = 128, y = 56 over 28, x = 56] ins(%t[y, x, c] : !T) outs(%r[c, y, x] : !R)
  %s = spyre.kernel.alloc : !R
  spyre.kernel.compute "neg" [c = 128, y = 56 over 28, x = 56] ins(%t[y, x, c] : !T) outs(%s[c, y, x] : !R)
  %1 = spyre.kernel.from_device %r : !R to tensor<128x56x56xf16>
  %2 = spyre.kernel.from_device %s : !R to tensor<128x56x56xf16>
  func.return %1, %2 : tensor<128x56x56xf16>, tensor<128x56x56xf16>
}

// CHECK-LABEL: func.func @read_besides
// CHECK: "identity" [c = 128

!I = !spyre.tensor<[64, 64, 128] x SEN169_FP16, order [0, 1, 2], stick 2, lx>
!H = !spyre.tensor<[64, 64, 128] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!P = !spyre.tensor<[66, 66, 128] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!V = !spyre.tensor<[] x SEN169_FP16, order [unit], stick unit, hbm>

// Zeros are around an image that a kernel computes: it writes between them.
func.func @framed(%x: tensor<64x64x128xf16>) -> tensor<64x64x128xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x64x128xf16> to !H
  %z = spyre.kernel.constant 0.000000e+00 : f64 : !V
  %i = spyre.kernel.alloc : !I
  spyre.kernel.compute "exp" [y = 64 over 32, x = 64, c = 128] ins(%0[y, x, c] : !H) outs(%i[y, x, c] : !I)
  %t = spyre.kernel.alloc : !I
  spyre.kernel.compute "silu" [y = 64 over 32, x = 64, c = 128] ins(%i[y, x, c] : !I) outs(%t[y, x, c] : !I)
  %p = spyre.kernel.alloc : !P
  spyre.kernel.compute "identity" [x = 66, c = 128] ins(%z[] : !V) outs(%p[0, x, c] : !P)
  spyre.kernel.compute "identity" [y = 64 over 32, x = 64, c = 128] ins(%t[y, x, c] : !I) outs(%p[y + 1, x + 1, c] : !P)
  %r = spyre.kernel.alloc : !H
  spyre.kernel.compute "exp" [y = 64 over 32, x = 64, c = 128] ins(%p[y, x, c] : !P) outs(%r[y, x, c] : !H)
  %1 = spyre.kernel.from_device %r : !H to tensor<64x64x128xf16>
  func.return %1 : tensor<64x64x128xf16>
}

// CHECK-LABEL: func.func @framed
// CHECK: %[[P:.*]] = spyre.kernel.alloc : !spyre.tensor<[66, 66, 128]
// CHECK-NEXT: "silu" {{.*}} outs(%[[P]][y + 1, x + 1, c] :
// CHECK-NEXT: "identity" {{.*}} outs(%[[P]][0, x, c] :
// CHECK-NOT: identity

// A kernel in between writes where the copy does: the copy has the last word.
func.func @overwritten(%x: tensor<64x64x128xf16>) -> tensor<64x64x128xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x64x128xf16> to !H
  %z = spyre.kernel.constant 0.000000e+00 : f64 : !V
  %i = spyre.kernel.alloc : !I
  spyre.kernel.compute "exp" [y = 64 over 32, x = 64, c = 128] ins(%0[y, x, c] : !H) outs(%i[y, x, c] : !I)
  %t = spyre.kernel.alloc : !I
  spyre.kernel.compute "silu" [y = 64 over 32, x = 64, c = 128] ins(%i[y, x, c] : !I) outs(%t[y, x, c] : !I)
  %p = spyre.kernel.alloc : !P
  spyre.kernel.compute "identity" [y = 66, x = 66, c = 128] ins(%z[] : !V) outs(%p[y, x, c] : !P)
  spyre.kernel.compute "identity" [y = 64 over 32, x = 64, c = 128] ins(%t[y, x, c] : !I) outs(%p[y + 1, x + 1, c] : !P)
  %r = spyre.kernel.alloc : !H
  spyre.kernel.compute "exp" [y = 64 over 32, x = 64, c = 128] ins(%p[y, x, c] : !P) outs(%r[y, x, c] : !H)
  %1 = spyre.kernel.from_device %r : !H to tensor<64x64x128xf16>
  func.return %1 : tensor<64x64x128xf16>
}

// CHECK-LABEL: func.func @overwritten
// CHECK: "silu"
// CHECK: "identity" [y = 66, x = 66, c = 128]
// CHECK: "identity" [y = 64 over 32, x = 64, c = 128]
