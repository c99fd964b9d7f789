// RUN: spyre-opt -p convert-spyre-loop-to-spyre-kernel %s | filecheck %s

// The product wants its summed loop in the lanes of the first operand, with zeros behind the 130 elements; the
// weight is laid out by the host, its padding 0.

func.func @main(%x: tensor<16x130xf32>, %w: tensor<32x130xf32> {aten.kind = "parameter"}) -> tensor<16x32xf32> {
  %0 = spyre.loop.nest [m = 16, n = 32, k = 130] ins(%x[m, k] : tensor<16x130xf32>, %w[n, k] : tensor<32x130xf32>) -> [m, n] : tensor<16x32xf32> reduce "arith.addf" {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    spyre.loop.yield %p : f32
  }
  func.return %0 : tensor<16x32xf32>
}

// CHECK:      %[[X:.*]] = spyre.kernel.to_device %x : tensor<16x130xf32> to !spyre.tensor<[16, 130] x SEN169_FP16, order [1, 0], stick 1, hbm>
// CHECK-NEXT: %[[W:.*]] = spyre.kernel.to_device %w zero_padding : tensor<32x130xf32> to !spyre.tensor<[32, 130] x SEN169_FP16, order [0, 1], stick 0, extents [64, 192], hbm>
// CHECK-NEXT: %[[MASK:.*]] = spyre.kernel.constant #spyre.first_ones<2>
// CHECK-NEXT: %[[ZERO:.*]] = spyre.kernel.constant 0.000000e+00
// CHECK-NEXT: spyre.kernel.compute "where3" [d0 = 16, d1 = 64] ins(%[[MASK]][d1] : {{.*}}, %[[X]][d0, d1 + 128] : {{.*}}, %[[ZERO]][] : {{.*}}) outs(%[[X]][d0, d1 + 128] :
// CHECK-NEXT: %[[OUT:.*]] = spyre.kernel.alloc : !spyre.tensor<[16, 32] x SEN169_FP16, order [1, 0], stick 1, hbm>
// CHECK-NEXT: spyre.kernel.compute "batchmatmul" [m = 16, n = 32, k = 130] ins(%[[X]][m, k] : {{.*}}, %[[W]][n, k] : {{.*}}) outs(%[[OUT]][m, n] :
// CHECK-NEXT: spyre.kernel.from_device %[[OUT]]
