// RUN: spyre-opt -p split-products %s | filecheck %s

// Queries and keys are columns of one product, and the bias of all columns lies between: each reader gets a product and a bias of its own.
// Columns 256 to 319 are read by nobody.

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[Q:%.*]] = spyre.loop.nest [m = 64, n = 128, k = 96] ins(%x[m, k] : tensor<64x96xf16>, %weight[n, k] : tensor<320x96xf16>) -> [m, n] : tensor<64x128xf16> reduce "arith.addf"
// CHECK: [[K:%.*]] = spyre.loop.nest [m = 64, n = 128, k = 96] ins(%x[m, k] : tensor<64x96xf16>, %weight[n + 128, k] : tensor<320x96xf16>) -> [m, n] : tensor<64x128xf16> reduce "arith.addf"
// CHECK: [[BQ:%.*]] = spyre.loop.nest [m = 64, n = 128] ins([[Q]][m, n] : tensor<64x128xf16>, %bias[n] : tensor<320xf16>) -> [m, n] : tensor<64x128xf16>
// CHECK: [[BK:%.*]] = spyre.loop.nest [m = 64, n = 128] ins([[K]][m, n] : tensor<64x128xf16>, %bias[n + 128] : tensor<320xf16>) -> [m, n] : tensor<64x128xf16>
// CHECK: spyre.loop.nest [h = 2, m = 64, d = 64] ins([[BQ]][m, h * 64 + d] : tensor<64x128xf16>, [[BK]][m, h * 64 + d] : tensor<64x128xf16>) -> [h, m, d] : tensor<2x64x64xf16>
func.func @main(%x: tensor<64x96xf16>, %weight: tensor<320x96xf16>, %bias: tensor<320xf16>) -> tensor<2x64x64xf16> {
  %0 = spyre.loop.nest [m = 64, n = 320, k = 96] ins(%x[m, k] : tensor<64x96xf16>, %weight[n, k] : tensor<320x96xf16>) -> [m, n] : tensor<64x320xf16> reduce "arith.addf" {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  %1 = spyre.loop.nest [m = 64, n = 320] ins(%0[m, n] : tensor<64x320xf16>, %bias[n] : tensor<320xf16>) -> [m, n] : tensor<64x320xf16> {
  ^bb0(%p : f16, %q : f16):
    %s = arith.addf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  %2 = spyre.loop.nest [h = 2, m = 64, d = 64] ins(%1[m, h * 64 + d] : tensor<64x320xf16>, %1[m, h * 64 + d + 128] : tensor<64x320xf16>) -> [h, m, d] : tensor<2x64x64xf16> {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  func.return %2 : tensor<2x64x64xf16>
}

// Columns that a reader takes whole, parts that are no whole sticks, and few rows stay one product.

// CHECK-LABEL: func.func @whole
// CHECK-COUNT-1: reduce "arith.addf"
// CHECK-NOT: reduce
func.func @whole(%x: tensor<64x96xf16>, %weight: tensor<256x96xf16>) -> (tensor<64x128xf16>, tensor<64x256xf16>) {
  %0 = spyre.loop.nest [m = 64, n = 256, k = 96] ins(%x[m, k] : tensor<64x96xf16>, %weight[n, k] : tensor<256x96xf16>) -> [m, n] : tensor<64x256xf16> reduce "arith.addf" {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  %1 = spyre.loop.nest [m = 64, n = 128] ins(%0[m, n] : tensor<64x256xf16>, %0[m, n + 128] : tensor<64x256xf16>) -> [m, n] : tensor<64x128xf16> {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  func.return %1, %0 : tensor<64x128xf16>, tensor<64x256xf16>
}

// CHECK-LABEL: func.func @unaligned
// CHECK-COUNT-1: reduce "arith.addf"
// CHECK-NOT: reduce
func.func @unaligned(%x: tensor<64x96xf16>, %weight: tensor<160x96xf16>) -> tensor<64x80xf16> {
  %0 = spyre.loop.nest [m = 64, n = 160, k = 96] ins(%x[m, k] : tensor<64x96xf16>, %weight[n, k] : tensor<160x96xf16>) -> [m, n] : tensor<64x160xf16> reduce "arith.addf" {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  %1 = spyre.loop.nest [m = 64, n = 80] ins(%0[m, n] : tensor<64x160xf16>, %0[m, n + 80] : tensor<64x160xf16>) -> [m, n] : tensor<64x80xf16> {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  func.return %1 : tensor<64x80xf16>
}

// CHECK-LABEL: func.func @few_rows
// CHECK-COUNT-1: reduce "arith.addf"
// CHECK-NOT: reduce
func.func @few_rows(%x: tensor<4x96xf16>, %weight: tensor<256x96xf16>) -> tensor<4x128xf16> {
  %0 = spyre.loop.nest [m = 4, n = 256, k = 96] ins(%x[m, k] : tensor<4x96xf16>, %weight[n, k] : tensor<256x96xf16>) -> [m, n] : tensor<4x256xf16> reduce "arith.addf" {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  %1 = spyre.loop.nest [m = 4, n = 128] ins(%0[m, n] : tensor<4x256xf16>, %0[m, n + 128] : tensor<4x256xf16>) -> [m, n] : tensor<4x128xf16> {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  func.return %1 : tensor<4x128xf16>
}
