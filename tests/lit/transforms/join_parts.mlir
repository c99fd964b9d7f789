// RUN: spyre-opt -p join-parts %s | filecheck %s

// Both halves of the rows are scaled by one number: one nest scales all rows, and each reader takes its half of the result.

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[Q:%.*]] = spyre.loop.nest [m = 8, n = 64] ins(%x[m, n] : tensor<8x64xf16>, %y[m, n] : tensor<8x64xf16>) -> [m, n] : tensor<8x64xf16>
// CHECK: [[C:%.*]] = spyre.loop.constant 5.000000e-01 : f64 : tensor<f16>
// CHECK-NEXT: [[S:%.*]] = spyre.loop.nest [d0 = 8, d1 = 64] ins([[Q]][d0, d1] : tensor<8x64xf16>, [[C]][] : tensor<f16>) -> [d0, d1] : tensor<8x64xf16>
// CHECK: arith.mulf
// CHECK: spyre.loop.nest [m = 4, n = 64] ins([[S]][m, n] : tensor<8x64xf16>, [[S]][m + 4, n] : tensor<8x64xf16>) -> [m, n] : tensor<4x64xf16>
// CHECK-NOT: arith.mulf
func.func @main(%x: tensor<8x64xf16>, %y: tensor<8x64xf16>) -> tensor<4x64xf16> {
  %q = spyre.loop.nest [m = 8, n = 64] ins(%x[m, n] : tensor<8x64xf16>, %y[m, n] : tensor<8x64xf16>) -> [m, n] : tensor<8x64xf16> {
  ^bb0(%a : f16, %b : f16):
    %s = arith.addf %a, %b : f16
    spyre.loop.yield %s : f16
  }
  %c = spyre.loop.constant 5.000000e-01 : f64 : tensor<f16>
  %0 = spyre.loop.nest [m = 4, n = 64] ins(%q[m, n] : tensor<8x64xf16>, %c[] : tensor<f16>) -> [m, n] : tensor<4x64xf16> {
  ^bb0(%a : f16, %b : f16):
    %s = arith.mulf %a, %b : f16
    spyre.loop.yield %s : f16
  }
  %d = spyre.loop.constant 5.000000e-01 : f64 : tensor<f16>
  %1 = spyre.loop.nest [m = 4, n = 64] ins(%q[m + 4, n] : tensor<8x64xf16>, %d[] : tensor<f16>) -> [m, n] : tensor<4x64xf16> {
  ^bb0(%a : f16, %b : f16):
    %s = arith.mulf %a, %b : f16
    spyre.loop.yield %s : f16
  }
  %r = spyre.loop.nest [m = 4, n = 64] ins(%0[m, n] : tensor<4x64xf16>, %1[m, n] : tensor<4x64xf16>) -> [m, n] : tensor<4x64xf16> {
  ^bb0(%a : f16, %b : f16):
    %s = arith.addf %a, %b : f16
    spyre.loop.yield %s : f16
  }
  func.return %r : tensor<4x64xf16>
}

// Parts of what the host sends stay apart.

// CHECK-LABEL: func.func @given
// CHECK-COUNT-2: arith.negf
func.func @given(%x: tensor<8x64xf16>) -> tensor<4x64xf16> {
  %0 = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : tensor<8x64xf16>) -> [m, n] : tensor<4x64xf16> {
  ^bb0(%a : f16):
    %s = arith.negf %a : f16
    spyre.loop.yield %s : f16
  }
  %1 = spyre.loop.nest [m = 4, n = 64] ins(%x[m + 4, n] : tensor<8x64xf16>) -> [m, n] : tensor<4x64xf16> {
  ^bb0(%a : f16):
    %s = arith.negf %a : f16
    spyre.loop.yield %s : f16
  }
  %r = spyre.loop.nest [m = 4, n = 64] ins(%0[m, n] : tensor<4x64xf16>, %1[m, n] : tensor<4x64xf16>) -> [m, n] : tensor<4x64xf16> {
  ^bb0(%a : f16, %b : f16):
    %s = arith.addf %a, %b : f16
    spyre.loop.yield %s : f16
  }
  func.return %r : tensor<4x64xf16>
}
