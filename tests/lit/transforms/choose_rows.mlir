// RUN: spyre-opt -p choose-rows %s | filecheck %s

// Two sequences are the batch, and 512 positions the rows, which lie inside of them.
!X = !spyre.tensor<[512, 2, 768] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>
!W = !spyre.tensor<[1024, 768] x SEN169_FP16, order [0, 1], stick 0, hbm>
!Y = !spyre.tensor<[512, 2, 1024] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>

// CHECK: spyre.kernel.compute "batchmatmul" [b0 = 2, m = 512, n = 1024, k = 768] ins(%{{.*}}[m, b0, k] : {{.*}}, %{{.*}}[n, k] : {{.*}}) outs(%{{.*}}[m, b0, n]
func.func @main(%x: tensor<512x2x768xf16>, %w: tensor<1024x768xf16>) -> tensor<512x2x1024xf16> {
  %0 = spyre.kernel.to_device %x : tensor<512x2x768xf16> to !X
  %1 = spyre.kernel.to_device %w zero_padding : tensor<1024x768xf16> to !W
  %2 = spyre.kernel.alloc : !Y
  spyre.kernel.compute "batchmatmul" [b0 = 512, m = 2, n = 1024, k = 768] ins(%0[b0, m, k] : !X, %1[n, k] : !W) outs(%2[b0, m, n] : !Y)
  %3 = spyre.kernel.from_device %2 : !Y to tensor<512x2x1024xf16>
  func.return %3 : tensor<512x2x1024xf16>
}
