// RUN: spyre-opt -p order-batches %s | filecheck %s

// Heads are beside each other in the columns of %v, whose rows lie outermost: its sticks go there instead. The sum of
// %v with itself is computed from it, and changes with it. %x comes from the host, and stays.
!X = !spyre.tensor<[1, 128, 512] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>
!P = !spyre.tensor<[1, 8, 128, 128] x SEN169_FP16, order [1, 2, 3, 0], stick 3, hbm>
!Y = !spyre.tensor<[1, 8, 128, 64] x SEN169_FP16, order [1, 2, 3, 0], stick 3, hbm>

func.func @main(%x: tensor<1x128x512xf16>, %p: tensor<1x8x128x128xf16>) -> tensor<1x8x128x64xf16> {
  %0 = spyre.kernel.to_device %x : tensor<1x128x512xf16> to !X
  %1 = spyre.kernel.to_device %p : tensor<1x8x128x128xf16> to !P
  %u = spyre.kernel.alloc : !X
  spyre.kernel.compute "neg" [i = 128, j = 512] ins(%0[0, i, j] : !X) outs(%u[0, i, j] : !X)
  %v = spyre.kernel.alloc : !X
  spyre.kernel.compute "add" [i = 128, j = 512] ins(%u[0, i, j] : !X, %u[0, i, j] : !X) outs(%v[0, i, j] : !X)
  %y = spyre.kernel.alloc : !Y
  spyre.kernel.compute "batchmatmul" [b = 8, m = 128, n = 64, k = 128] ins(%1[0, b, m, k] : !P, %v[0, k, b * 64 + n] : !X) outs(%y[0, b, m, n] : !Y)
  %2 = spyre.kernel.from_device %y : !Y to tensor<1x8x128x64xf16>
  func.return %2 : tensor<1x8x128x64xf16>
}

// CHECK: %[[X:.*]] = spyre.kernel.to_device %x {{.*}} order [1, 2, 0], stick 2
// CHECK: "neg" {{.*}} ins(%[[X]][0, i, j] : {{.*}} order [1, 2, 0], {{.*}}) outs({{.*}} order [2, 1, 0], stick 2
// CHECK: "add" {{.*}} outs({{.*}} order [2, 1, 0], stick 2
// CHECK: "batchmatmul" {{.*}} order [1, 2, 3, 0], stick 3, hbm>, {{.*}} order [2, 1, 0], stick 2, hbm>)
