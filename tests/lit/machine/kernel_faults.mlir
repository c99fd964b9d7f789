// RUN: not spyre-run %s 2>&1 | filecheck %s
// A buffer in LX is read after its life is over.

// CHECK:      error: [SPY-F001] use-after-free: input 0 was freed
// CHECK-NEXT:   at: spyre.kernel.compute loc("model.py":2:0)

!t = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!l = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, lx>

func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = spyre.kernel.to_device %x : tensor<4x64xf32> to !t
  %1 = spyre.kernel.alloc at 0 : i64 : !l
  spyre.kernel.compute "exp" [m = 4 over 2, n = 64] ins(%0[m, n] : !t) outs(%1[m, n] : !l) loc("model.py":1:0)
  spyre.kernel.free %1 : !l
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "neg" [m = 4 over 2, n = 64] ins(%1[m, n] : !l) outs(%2[m, n] : !t) loc("model.py":2:0)
  %3 = spyre.kernel.from_device %2 : !t to tensor<4x64xf32>
  func.return %3 : tensor<4x64xf32>
}
