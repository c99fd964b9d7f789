// RUN: spyre-opt -p convert-spyre-loop-to-spyre-kernel %s | filecheck %s

// Four results of 512 x 256, each row times a number of its own: the 2,048 numbers are laid out again, 2,048 sticks read
// and as many written, and not the results, which are 8,192 either way.

func.func @main(%x: tensor<512x256xf16>, %w: tensor<4x256x256xf16>, %s: tensor<512x4xf16>) -> tensor<4x512x256xf16> {
  %0 = spyre.loop.nest [a = 4, b = 512, c = 256] ins(%x[b, c] : tensor<512x256xf16>) -> [a, b, c] : tensor<4x512x256xf16> {
  ^bb0(%e: f16):
    spyre.loop.yield %e : f16
  }
  %1 = spyre.loop.nest [a = 4, m = 512, n = 256, k = 256] ins(%0[a, m, k] : tensor<4x512x256xf16>, %w[a, k, n] : tensor<4x256x256xf16>) -> [a, m, n] : tensor<4x512x256xf16> reduce "arith.addf" {
  ^bb0(%e: f16, %f: f16):
    %p = arith.mulf %e, %f : f16
    spyre.loop.yield %p : f16
  }
  %2 = spyre.loop.nest [b = 512, a = 4] ins(%s[b, a] : tensor<512x4xf16>) -> [b, a] : tensor<512x4xf16> {
  ^bb0(%e: f16):
    %n = arith.negf %e : f16
    spyre.loop.yield %n : f16
  }
  %3 = spyre.loop.nest [a = 4, b = 512, c = 256] ins(%1[a, b, c] : tensor<4x512x256xf16>, %2[b, a] : tensor<512x4xf16>) -> [a, b, c] : tensor<4x512x256xf16> {
  ^bb0(%e: f16, %f: f16):
    %p = arith.mulf %e, %f : f16
    spyre.loop.yield %p : f16
  }
  func.return %3 : tensor<4x512x256xf16>
}

// CHECK:      "batchmatmul" {{.*}} outs(%[[Y:.*]][a, m, n] : !spyre.tensor<[4, 512, 256] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>)
// CHECK:      "neg" {{.*}} outs(%[[S:.*]][b, a]
// CHECK:      %[[SPARSE:.*]] = spyre.kernel.alloc : {{.*}}stick unit, hbm>
// CHECK-NEXT: spyre.kernel.restickify [d0 = 512, d1 = 4, u = 64] ins(%[[S]]{{.*}} outs(%[[SPARSE]]
// CHECK-NOT:  restickify
// CHECK:      "mul" [a = 4, b = 512, c = 256] ins(%[[Y]][a, b, c]{{.*}}, %[[SPARSE]][b, a]
