// RUN: spyre-opt -p pack-weights %s | filecheck %s

// Each digit of the words is a part of the sum, and the products are added up.

// CHECK-LABEL: func.func @sum
// CHECK-NEXT: [[A:%.*]] = spyre.loop.nest [a = 256, b = 64] ins(%weight[a, b] : tensor<256x256xi8>) -> [a, b] : tensor<256x64xf16> attributes {digits = 8 : i64}
// CHECK: [[P:%.*]] = spyre.loop.nest [m = 4, n = 256, k = 64] ins(%x[m, k] : tensor<4x256xf16>, [[A]][n, k] : tensor<256x64xf16>) -> [m, n] : tensor<4x256xf16> reduce "arith.addf"
// CHECK: [[B:%.*]] = spyre.loop.nest [a = 256, b = 64] ins(%weight[a, b + 64] : tensor<256x256xi8>)
// CHECK: [[Q:%.*]] = spyre.loop.nest [m = 4, n = 256, k = 64] ins(%x[m, k + 64] : tensor<4x256xf16>, [[B]][n, k] : tensor<256x64xf16>)
// CHECK: [[S:%.*]] = spyre.loop.nest [d0 = 4, d1 = 256] ins([[P]][d0, d1] : tensor<4x256xf16>, [[Q]][d0, d1] : tensor<4x256xf16>) -> [d0, d1] : tensor<4x256xf16>
// CHECK: arith.addf
// CHECK: spyre.loop.nest [a = 256, b = 64] ins(%weight[a, b + 128] : tensor<256x256xi8>)
// CHECK: spyre.loop.nest [d0 = 4, d1 = 256] ins([[S]][d0, d1] : tensor<4x256xf16>
// CHECK: spyre.loop.nest [a = 256, b = 64] ins(%weight[a, b + 192] : tensor<256x256xi8>)
func.func @sum(%x: tensor<4x256xf16>, %weight: tensor<256x256xi8> {aten.kind = "buffer", aten.name = "weight"}) -> tensor<4x256xf16> {
  %0 = spyre.loop.nest [a = 256, b = 256] ins(%weight[a, b] : tensor<256x256xi8>) -> [a, b] : tensor<256x256xf16> {
  ^bb0(%p : i8):
    spyre.loop.yield %p : i8
  }
  %1 = spyre.loop.nest [m = 4, n = 256, k = 256] ins(%x[m, k] : tensor<4x256xf16>, %0[n, k] : tensor<256x256xf16>) -> [m, n] : tensor<4x256xf16> reduce "arith.addf" {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  func.return %1 : tensor<4x256xf16>
}

// Parts of this sum would be no whole sticks: each digit is a part of the weight's rows, and makes its part of the columns.

// CHECK-LABEL: func.func @columns
// CHECK-NEXT: [[A:%.*]] = spyre.loop.nest [a = 64, b = 288] ins(%weight[a, b] : tensor<256x288xi8>) -> [a, b] : tensor<64x288xf16> attributes {digits = 8 : i64}
// CHECK: [[P:%.*]] = spyre.loop.nest [m = 4, n = 64, k = 288] ins(%x[m, k] : tensor<4x288xf16>, [[A]][n, k] : tensor<64x288xf16>) -> [m, n] : tensor<4x64xf16> reduce "arith.addf"
// CHECK: [[B:%.*]] = spyre.loop.nest [a = 64, b = 288] ins(%weight[a + 64, b] : tensor<256x288xi8>)
// CHECK: [[Q:%.*]] = spyre.loop.nest [m = 4, n = 64, k = 288] ins(%x[m, k] : tensor<4x288xf16>, [[B]][n, k] : tensor<64x288xf16>)
// CHECK: spyre.loop.nest [a = 64, b = 288] ins(%weight[a + 128, b] : tensor<256x288xi8>)
// CHECK: spyre.loop.nest [a = 64, b = 288] ins(%weight[a + 192, b] : tensor<256x288xi8>)
// CHECK: [[EMPTY:%.*]] = spyre.loop.empty : tensor<4x256xf16>
// CHECK: [[FIRST:%.*]] = spyre.loop.nest [m = 4, n = 64] ins([[P]][m, n] : tensor<4x64xf16>) into [[EMPTY]] -> [m, n] : tensor<4x256xf16>
// CHECK: spyre.loop.nest [m = 4, n = 64] ins([[Q]][m, n] : tensor<4x64xf16>) into [[FIRST]] -> [m, n + 64] : tensor<4x256xf16>
func.func @columns(%x: tensor<4x288xf16>, %weight: tensor<256x288xi8> {aten.kind = "buffer", aten.name = "weight"}) -> tensor<4x256xf16> {
  %0 = spyre.loop.nest [a = 256, b = 288] ins(%weight[a, b] : tensor<256x288xi8>) -> [a, b] : tensor<256x288xf16> {
  ^bb0(%p : i8):
    spyre.loop.yield %p : i8
  }
  %1 = spyre.loop.nest [m = 4, n = 256, k = 288] ins(%x[m, k] : tensor<4x288xf16>, %0[n, k] : tensor<256x288xf16>) -> [m, n] : tensor<4x256xf16> reduce "arith.addf" {
  ^bb0(%p : f16, %q : f16):
    %s = arith.mulf %p, %q : f16
    spyre.loop.yield %s : f16
  }
  func.return %1 : tensor<4x256xf16>
}
