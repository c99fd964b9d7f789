// RUN: not spyre-translate --target=ktir %s 2>&1 | filecheck %s

// All that has no KTIR is said at once.

!t = !spyre.tensor<[64, 64] x BFLOAT16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x64xbf16> to !t
  %1 = spyre.kernel.alloc : !t
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64, n = 64] ins(%0[m, n] : !t) outs(%1[m, n] : !t)
  spyre.kernel.compute "neg" [m = 64, n = 64] ins(%1[m, n] : !t) outs(%2[m, n] : !t)
  %3 = spyre.kernel.from_device %2 : !t to tensor<64x64xbf16>
  func.return %3 : tensor<64x64xbf16>
}

// CHECK: error: [SPY-U001] 2 kernels have no KTIR: exp at {{.*}} on BFLOAT16; neg at {{.*}} on BFLOAT16
// CHECK: try: elements are SEN169_FP16, IEEE_FP32
