// RUN: spyre-opt -p convert-spyre-loop-to-spyre-kernel,plan,materialize-plan,divide-work,place-lx,assign-pool %s | filecheck %s

// A weight of eight-bit floats stays one on the card. What is made of it for the product stays in the scratchpads: its
// kernels number the cores as the product does, whose sum is divided.

// CHECK:      %[[W:.*]] = spyre.kernel.to_device %w zero_padding : tensor<1024x1024xf8E4M3FN> to !spyre.tensor<[1024, 1024] x SEN143_FP8, order [0, 1], stick 0, hbm, qfp8ch>
// CHECK-NEXT: %[[WIDE:.*]] = spyre.kernel.alloc at 0 : i64 : !spyre.tensor<[1024, 1024] x SEN169_FP16, order [0, 1], stick 0, lx>
// CHECK-NEXT: spyre.kernel.convert [d1 = 1024 over 4, d0 = 1024 over 8] ins(%[[W]][d0, d1]{{.*}} outs(%[[WIDE]][d0, d1]
// CHECK:      spyre.kernel.compute "batchmatmul" [m = 64, n = 1024 over 8, k = 1024 over 4] ins({{.*}}, %[[WIDE]][n, k]
// CHECK-NEXT: spyre.kernel.free %[[WIDE]]
func.func @main(%x: tensor<64x1024xf16>, %w: tensor<1024x1024xf8E4M3FN> {aten.kind = "parameter", aten.name = "w"}) -> tensor<64x1024xf16> {
  %0 = spyre.loop.nest [d0 = 1024, d1 = 1024] ins(%w[d0, d1] : tensor<1024x1024xf8E4M3FN>) -> [d0, d1] : tensor<1024x1024xf16> {
  ^bb0(%a: f8E4M3FN):
    spyre.loop.yield %a : f8E4M3FN
  }
  %1 = spyre.loop.nest [m = 64, n = 1024, k = 1024] ins(%x[m, k] : tensor<64x1024xf16>, %0[n, k] : tensor<1024x1024xf16>) -> [m, n] : tensor<64x1024xf16> reduce "arith.addf" {
  ^bb0(%a: f16, %b: f16):
    %p = arith.mulf %a, %b : f16
    spyre.loop.yield %p : f16
  }
  func.return %1 : tensor<64x1024xf16>
}
