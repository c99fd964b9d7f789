// RUN: spyre-opt -p forward-copies %s | filecheck %s

// A product and an exponential are copied into one tensor, and that with its heads beside each other: both write there.
func.func @main(%x: tensor<4x32x64xf16>, %w: tensor<64x64xf16>) -> tensor<32x512xf16> {
  %0 = spyre.loop.nest [b = 4, m = 32, n = 64, k = 64] ins(%x[b, m, k] : tensor<4x32x64xf16>, %w[k, n] : tensor<64x64xf16>) -> [b, m, n] : tensor<4x32x64xf16> reduce "arith.addf" {
  ^bb0(%a: f16, %b: f16):
    %c = arith.mulf %a, %b : f16
    spyre.loop.yield %c : f16
  }
  %1 = spyre.loop.nest [i = 4, j = 32, l = 64] ins(%x[i, j, l] : tensor<4x32x64xf16>) -> [i, j, l] : tensor<4x32x64xf16> {
  ^bb0(%d: f16):
    %e = math.exp %d : f16
    spyre.loop.yield %e : f16
  }
  %2 = spyre.loop.empty : tensor<4x32x128xf16>
  %3 = spyre.loop.nest [i = 4, j = 32, l = 64] ins(%0[i, j, l] : tensor<4x32x64xf16>) into %2 -> [i, j, l] : tensor<4x32x128xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  %4 = spyre.loop.nest [i = 4, j = 32, l = 64] ins(%1[i, j, l] : tensor<4x32x64xf16>) into %3 -> [i, j, l + 64] : tensor<4x32x128xf16> {
  ^bb0(%g: f16):
    spyre.loop.yield %g : f16
  }
  %5 = spyre.loop.nest [h = 4, r = 32, c = 128] ins(%4[h, r, c] : tensor<4x32x128xf16>) -> [r, h * 128 + c] : tensor<32x512xf16> {
  ^bb0(%h: f16):
    spyre.loop.yield %h : f16
  }
  func.return %5 : tensor<32x512xf16>
}

// CHECK:      @main
// CHECK-NEXT: %[[E:.*]] = spyre.loop.empty : tensor<32x512xf16>
// CHECK-NEXT: %[[P:.*]] = spyre.loop.nest [b = 4, m = 32, n = 64, k = 64] ins({{.*}}) into %[[E]] -> [m, b * 128 + n] : tensor<32x512xf16> reduce "arith.addf"
// CHECK:      %[[S:.*]] = spyre.loop.nest [i = 4, j = 32, l = 64] ins({{.*}}) into %[[P]] -> [j, i * 128 + l + 64] : tensor<32x512xf16>
// CHECK:      math.exp
// CHECK-NOT:  spyre.loop.nest
// CHECK:      func.return %[[S]]

// Rows become columns: what computes %6 would have to have its inputs with these rows in the lanes.
func.func @turned(%x: tensor<64x128xf16>) -> tensor<128x64xf16> {
  %6 = spyre.loop.nest [i = 64, j = 128] ins(%x[i, j] : tensor<64x128xf16>) -> [i, j] : tensor<64x128xf16> {
  ^bb0(%d: f16):
    %e = math.exp %d : f16
    spyre.loop.yield %e : f16
  }
  %7 = spyre.loop.nest [i = 64, j = 128] ins(%6[i, j] : tensor<64x128xf16>) -> [j, i] : tensor<128x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  func.return %7 : tensor<128x64xf16>
}

// CHECK:      @turned
// CHECK:      spyre.loop.nest {{.*}} -> [i, j] : tensor<64x128xf16>
// CHECK:      spyre.loop.nest {{.*}} -> [j, i] : tensor<128x64xf16>

// Two copies read %8, which stays.
func.func @twice(%x: tensor<64x64xf16>) -> tensor<64x128xf16> {
  %8 = spyre.loop.nest [i = 64, j = 64] ins(%x[i, j] : tensor<64x64xf16>) -> [i, j] : tensor<64x64xf16> {
  ^bb0(%d: f16):
    %e = math.exp %d : f16
    spyre.loop.yield %e : f16
  }
  %9 = spyre.loop.empty : tensor<64x128xf16>
  %10 = spyre.loop.nest [i = 64, j = 64] ins(%8[i, j] : tensor<64x64xf16>) into %9 -> [i, j] : tensor<64x128xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  %11 = spyre.loop.nest [i = 64, j = 64] ins(%8[i, j] : tensor<64x64xf16>) into %10 -> [i, j + 64] : tensor<64x128xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  func.return %11 : tensor<64x128xf16>
}

// CHECK:      @twice
// CHECK:      %[[SIN:.*]] = spyre.loop.nest {{.*}} -> [i, j] : tensor<64x64xf16>
// CHECK:      ins(%[[SIN]][i, j]
// CHECK:      ins(%[[SIN]][i, j]

// Integers may be kept in a format of their own on the way.
func.func @integers(%x: tensor<64x64xi32>) -> tensor<64x128xi32> {
  %12 = spyre.loop.nest [i = 64, j = 64] ins(%x[i, j] : tensor<64x64xi32>, %x[i, j] : tensor<64x64xi32>) -> [i, j] : tensor<64x64xi32> {
  ^bb0(%d: i32, %e: i32):
    %f = arith.addi %d, %e : i32
    spyre.loop.yield %f : i32
  }
  %13 = spyre.loop.empty : tensor<64x128xi32>
  %14 = spyre.loop.nest [i = 64, j = 64] ins(%12[i, j] : tensor<64x64xi32>) into %13 -> [i, j] : tensor<64x128xi32> {
  ^bb0(%g: i32):
    spyre.loop.yield %g : i32
  }
  func.return %14 : tensor<64x128xi32>
}

// CHECK:      @integers
// CHECK:      arith.addi
// CHECK:      spyre.loop.nest {{.*}} into

// The copy puts rows and columns of images one after the other, behind a row of their own: one loop walks them there.
func.func @places(%x: tensor<8x196x64xf16>) -> tensor<8x197x64xf16> {
  %15 = spyre.loop.nest [b = 8, y = 14, z = 14, c = 64] ins(%x[b, y * 14 + z, c] : tensor<8x196x64xf16>) -> [b, y, z, c] : tensor<8x14x14x64xf16> {
  ^bb0(%d: f16):
    %e = math.exp %d : f16
    spyre.loop.yield %e : f16
  }
  %16 = spyre.loop.empty : tensor<8x197x64xf16>
  %17 = spyre.loop.nest [b = 8, y = 14, z = 14, c = 64] ins(%15[b, y, z, c] : tensor<8x14x14x64xf16>) into %16 -> [b, y * 14 + z + 1, c] : tensor<8x197x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  func.return %17 : tensor<8x197x64xf16>
}

// CHECK:      @places
// CHECK:      spyre.loop.nest [b = 8, y = 196, c = 64] ins(%x[b, y, c] : tensor<8x196x64xf16>) into {{.*}} -> [b, y + 1, c] : tensor<8x197x64xf16>

// Zeros before rows, and then before columns: what both surround is copied once, with the zeros beside it.
func.func @framed(%x: tensor<8x6x64xf16>) -> (tensor<8x6x64xf16>, tensor<9x7x64xf16>) {
  %12 = spyre.loop.nest [i = 8, j = 6, l = 64] ins(%x[i, j, l] : tensor<8x6x64xf16>) -> [i, j, l] : tensor<8x6x64xf16> {
  ^bb0(%d: f16):
    %e = math.exp %d : f16
    spyre.loop.yield %e : f16
  }
  %zero = spyre.loop.constant 0.000000e+00 : f64 : tensor<f16>
  %13 = spyre.loop.empty : tensor<9x6x64xf16>
  %14 = spyre.loop.nest [j = 6, l = 64] ins(%zero[] : tensor<f16>) into %13 -> [0, j, l] : tensor<9x6x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  %15 = spyre.loop.nest [i = 8, j = 6, l = 64] ins(%12[i, j, l] : tensor<8x6x64xf16>) into %14 -> [i + 1, j, l] : tensor<9x6x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  %16 = spyre.loop.empty : tensor<9x7x64xf16>
  %17 = spyre.loop.nest [i = 9, l = 64] ins(%zero[] : tensor<f16>) into %16 -> [i, 0, l] : tensor<9x7x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  %18 = spyre.loop.nest [i = 9, j = 6, l = 64] ins(%15[i, j, l] : tensor<9x6x64xf16>) into %17 -> [i, j + 1, l] : tensor<9x7x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  func.return %12, %18 : tensor<8x6x64xf16>, tensor<9x7x64xf16>
}

// CHECK:      @framed
// CHECK:      %[[E:.*]] = spyre.loop.empty : tensor<9x7x64xf16>
// CHECK-NEXT: %[[R:.*]] = spyre.loop.nest [j = 6, l = 64] ins({{.*}}) into %[[E]] -> [0, j + 1, l]
// CHECK:      %[[X:.*]] = spyre.loop.nest [i = 8, j = 6, l = 64] ins({{.*}}) into %[[R]] -> [i + 1, j + 1, l]
// CHECK:      %[[C:.*]] = spyre.loop.nest [i = 9, l = 64] ins({{.*}}) into %[[X]] -> [i, 0, l]
// CHECK-NOT:  spyre.loop.nest
// CHECK:      func.return {{.*}}, %[[C]]

// Zeros beside what a copy has in the lanes: they lie in the same sticks, and are put there in a tensor of its own.
func.func @in_sticks(%x: tensor<8x6x2xf16>) -> (tensor<8x6x2xf16>, tensor<8x7x64xf16>) {
  %21 = spyre.loop.nest [i = 8, j = 6, l = 2] ins(%x[i, j, l] : tensor<8x6x2xf16>) -> [i, j, l] : tensor<8x6x2xf16> {
  ^bb0(%d: f16):
    %e = math.exp %d : f16
    spyre.loop.yield %e : f16
  }
  %none = spyre.loop.constant 0.000000e+00 : f64 : tensor<f16>
  %22 = spyre.loop.empty : tensor<8x6x64xf16>
  %23 = spyre.loop.nest [i = 8, j = 6, l = 2] ins(%21[i, j, l] : tensor<8x6x2xf16>) into %22 -> [i, j, l] : tensor<8x6x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  %24 = spyre.loop.nest [i = 8, j = 6, l = 62] ins(%none[] : tensor<f16>) into %23 -> [i, j, l + 2] : tensor<8x6x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  %25 = spyre.loop.empty : tensor<8x7x64xf16>
  %26 = spyre.loop.nest [i = 8, l = 64] ins(%none[] : tensor<f16>) into %25 -> [i, 0, l] : tensor<8x7x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  %27 = spyre.loop.nest [i = 8, j = 6, l = 64] ins(%24[i, j, l] : tensor<8x6x64xf16>) into %26 -> [i, j + 1, l] : tensor<8x7x64xf16> {
  ^bb0(%f: f16):
    spyre.loop.yield %f : f16
  }
  func.return %21, %27 : tensor<8x6x2xf16>, tensor<8x7x64xf16>
}

// CHECK:      @in_sticks
// CHECK:      spyre.loop.empty : tensor<8x6x64xf16>
// CHECK:      spyre.loop.nest {{.*}} -> [i, j, l + 2] : tensor<8x6x64xf16>
// CHECK:      spyre.loop.nest {{.*}} -> [i, j + 1, l] : tensor<8x7x64xf16>
