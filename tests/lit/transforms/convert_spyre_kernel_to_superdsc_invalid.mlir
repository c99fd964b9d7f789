// RUN: not spyre-opt -p 'convert-spyre-kernel-to-superdsc{addresses=concrete}' %s 2>&1 | filecheck %s

// Eight buffers that kernels use for seven segments.

!t = !spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>

func.func @main() {
  %0 = spyre.kernel.alloc : !t
  %1 = spyre.kernel.alloc : !t
  %2 = spyre.kernel.alloc : !t
  %3 = spyre.kernel.alloc : !t
  %4 = spyre.kernel.alloc : !t
  %5 = spyre.kernel.alloc : !t
  %6 = spyre.kernel.alloc : !t
  %7 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64] ins(%0[m] : !t) outs(%1[m] : !t)
  spyre.kernel.compute "exp" [m = 64] ins(%2[m] : !t) outs(%3[m] : !t)
  spyre.kernel.compute "exp" [m = 64] ins(%4[m] : !t) outs(%5[m] : !t)
  spyre.kernel.compute "exp" [m = 64] ins(%6[m] : !t) outs(%7[m] : !t)
  func.return
}

// CHECK: error: [SPY-L001] concrete addresses need a segment per argument: 8, the card has 7
// CHECK: try: use addresses=symbolic
