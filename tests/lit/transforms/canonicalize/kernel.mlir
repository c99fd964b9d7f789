// RUN: spyre-opt -p canonicalize %s | filecheck %s

!rows = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!columns = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 0, hbm>
!plain = !spyre.tensor<[64] x IEEE_FP32, order [0, unit], stick unit, hbm>
!half = !spyre.tensor<[64] x SEN169_FP16, order [0, unit], stick unit, hbm>

// CHECK-LABEL: func.func @unused(
// CHECK-NEXT:    func.return
func.func @unused(%x: tensor<64x128xf16>) {
  %a = spyre.kernel.to_device %x : tensor<64x128xf16> to !rows
  %b = spyre.kernel.alloc at 0 : i64 : !rows
  %c = spyre.kernel.alloc : !columns
  %k = spyre.kernel.constant 1.0 : f64 : !rows
  spyre.kernel.compute "add" [m = 64, n = 128] ins(%a[m, n] : !rows, %k[m, n] : !rows) outs(%b[m, n] : !rows)
  spyre.kernel.free %b : !rows
  func.return
}

// CHECK-LABEL: func.func @used(
// CHECK:         spyre.kernel.compute "neg"
// CHECK:         spyre.kernel.compute "abs"
func.func @used(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %a = spyre.kernel.to_device %x : tensor<64x128xf16> to !rows
  %b = spyre.kernel.alloc : !rows
  spyre.kernel.compute "neg" [m = 64, n = 128] ins(%a[m, n] : !rows) outs(%b[m, n] : !rows)
  spyre.kernel.compute "abs" [m = 64, n = 128] ins(%b[m, n] : !rows) outs(%b[m, n] : !rows)
  %r = spyre.kernel.from_device %b : !rows to tensor<64x128xf16>
  func.return %r : tensor<64x128xf16>
}

// CHECK-LABEL: func.func @there_and_back(
// CHECK-NEXT:    %[[A:.*]] = spyre.kernel.to_device
// CHECK-NEXT:    spyre.kernel.from_device %[[A]]
// CHECK-NEXT:    func.return
func.func @there_and_back(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %a = spyre.kernel.to_device %x : tensor<64x128xf16> to !rows
  %b = spyre.kernel.alloc : !columns
  %c = spyre.kernel.alloc : !rows
  spyre.kernel.restickify [m = 64, n = 128] ins(%a[m, n] : !rows) outs(%b[m, n] : !columns)
  spyre.kernel.restickify [m = 64, n = 128] ins(%b[m, n] : !columns) outs(%c[m, n] : !rows)
  %r = spyre.kernel.from_device %c : !rows to tensor<64x128xf16>
  func.return %r : tensor<64x128xf16>
}

// The original is overwritten before the copy is read.
// CHECK-LABEL: func.func @overwritten(
// CHECK:         spyre.kernel.restickify
// CHECK:         spyre.kernel.restickify
func.func @overwritten(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %a = spyre.kernel.to_device %x : tensor<64x128xf16> to !rows
  %b = spyre.kernel.alloc : !columns
  %c = spyre.kernel.alloc : !rows
  spyre.kernel.restickify [m = 64, n = 128] ins(%a[m, n] : !rows) outs(%b[m, n] : !columns)
  spyre.kernel.restickify [m = 64, n = 128] ins(%b[m, n] : !columns) outs(%c[m, n] : !rows)
  spyre.kernel.compute "neg" [m = 64, n = 128] ins(%a[m, n] : !rows) outs(%a[m, n] : !rows)
  %r = spyre.kernel.from_device %c : !rows to tensor<64x128xf16>
  func.return %r : tensor<64x128xf16>
}

// Float32 holds every DLFloat16, but not the other way round.
// CHECK-LABEL: func.func @wider(
// CHECK-NEXT:    spyre.kernel.to_device
// CHECK-NEXT:    spyre.kernel.from_device
func.func @wider(%x: tensor<64xf16>) -> tensor<64xf16> {
  %a = spyre.kernel.to_device %x : tensor<64xf16> to !half
  %b = spyre.kernel.alloc : !plain
  %c = spyre.kernel.alloc : !half
  spyre.kernel.convert [m = 64] ins(%a[m] : !half) outs(%b[m] : !plain)
  spyre.kernel.convert [m = 64] ins(%b[m] : !plain) outs(%c[m] : !half)
  %r = spyre.kernel.from_device %c : !half to tensor<64xf16>
  func.return %r : tensor<64xf16>
}

// A conversion that rounds leaves another tensor.
// CHECK-LABEL: func.func @rounded_on_the_way(
// CHECK:         spyre.kernel.convert {{.*}} element f32
// CHECK:         spyre.kernel.convert
func.func @rounded_on_the_way(%x: tensor<64xi64>) -> tensor<64xi64> {
  %a = spyre.kernel.to_device %x : tensor<64xi64> to !half
  %b = spyre.kernel.alloc : !plain
  %c = spyre.kernel.alloc : !half
  spyre.kernel.convert [m = 64] ins(%a[m] : !half) outs(%b[m] : !plain) element f32
  spyre.kernel.convert [m = 64] ins(%b[m] : !plain) outs(%c[m] : !half)
  %r = spyre.kernel.from_device %c : !half to tensor<64xi64>
  func.return %r : tensor<64xi64>
}

// CHECK-LABEL: func.func @narrower(
// CHECK:         spyre.kernel.convert
// CHECK:         spyre.kernel.convert
func.func @narrower(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = spyre.kernel.to_device %x : tensor<64xf32> to !plain
  %b = spyre.kernel.alloc : !half
  %c = spyre.kernel.alloc : !plain
  spyre.kernel.convert [m = 64] ins(%a[m] : !plain) outs(%b[m] : !half)
  spyre.kernel.convert [m = 64] ins(%b[m] : !half) outs(%c[m] : !plain)
  %r = spyre.kernel.from_device %c : !plain to tensor<64xf32>
  func.return %r : tensor<64xf32>
}

// CHECK-LABEL: func.func @never_left(
// CHECK-NEXT:    func.return %x
func.func @never_left(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = spyre.kernel.to_device %x : tensor<64xf32> to !plain
  %r = spyre.kernel.from_device %a : !plain to tensor<64xf32>
  func.return %r : tensor<64xf32>
}

// DLFloat16 rounds float32, and integers.
// CHECK-LABEL: func.func @rounded(
// CHECK-NEXT:    spyre.kernel.to_device
// CHECK-NEXT:    spyre.kernel.from_device
func.func @rounded(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = spyre.kernel.to_device %x : tensor<64xf32> to !half
  %r = spyre.kernel.from_device %a : !half to tensor<64xf32>
  func.return %r : tensor<64xf32>
}

!part = !spyre.tensor<[16, 128] x SEN169_FP16, order [1, 0], stick 1, extents [64, 128], hbm>

// A tile of the whole tensor is the tensor; other tiles stay.
// CHECK-LABEL: func.func @tiles(
// CHECK:         scf.for
// CHECK-NEXT:      %[[P:.*]] = spyre.kernel.tile %{{.*}} dim 0
// CHECK-NEXT:      "neg" {{.*}} ins(%[[P]][m, n] {{.*}} outs(%[[P]][m, n]
// CHECK-NEXT:      "abs" {{.*}} ins(%[[O:.*]][m, n] {{.*}} outs(%[[O]][m, n]
func.func @tiles(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %o = spyre.kernel.to_device %x : tensor<64x128xf16> to !rows
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %p = spyre.kernel.tile %o dim 0 at %i * 16 : !rows to !part
    spyre.kernel.compute "neg" [m = 16, n = 128] ins(%p[m, n] : !part) outs(%p[m, n] : !part)
    %w = spyre.kernel.tile %o dim 0 at %i * 0 : !rows to !rows
    spyre.kernel.compute "abs" [m = 64, n = 128] ins(%w[m, n] : !rows) outs(%w[m, n] : !rows)
  }
  %r = spyre.kernel.from_device %o : !rows to tensor<64x128xf16>
  func.return %r : tensor<64x128xf16>
}
