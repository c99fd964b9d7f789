// RUN: not spyre-opt -p place-lx %s 2>&1 | filecheck %s

// Two buffers of 64 rows of two sticks, both needed by add, at overlapping bytes.

!a = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>
!l = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, lx>

func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf32> to !a
  %1 = spyre.kernel.alloc at 0 : i64 : !l
  spyre.kernel.compute "exp" [m = 64 over 2, n = 128] ins(%0[m, n] : !a) outs(%1[m, n] : !l)
  %2 = spyre.kernel.alloc at 4096 : i64 : !l
  spyre.kernel.compute "neg" [m = 64 over 2, n = 128] ins(%0[m, n] : !a) outs(%2[m, n] : !l)
  %3 = spyre.kernel.alloc : !a
  spyre.kernel.compute "add" [m = 64 over 2, n = 128] ins(%1[m, n] : !l, %2[m, n] : !l) outs(%3[m, n] : !a)
  %4 = spyre.kernel.from_device %3 : !a to tensor<64x128xf32>
  func.return %4 : tensor<64x128xf32>
}

// CHECK: error: [SPY-L001] two buffers live in the same bytes of the scratchpad: 0 to 8192 and 4096 to 12288
// CHECK: at: spyre.kernel.alloc at {{.*}}:10{{.*}}, spyre.kernel.alloc at {{.*}}:12
// CHECK: try: give one of them another address
