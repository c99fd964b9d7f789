// RUN: not spyre-opt -p divide-work %s 2>&1 | filecheck %s

// 2097169 is prime: every core would have to reach all rows, each one stick of 128 bytes.

!t = !spyre.tensor<[2097169, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main() {
  %0 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 2097169, n = 64] ins(%0[m, n] : !t) outs(%0[m, n] : !t)
  func.return
}

// CHECK: error: [SPY-L001] exp: a core would touch 268437632 bytes of one tensor, it reaches 268431360
// CHECK: at: spyre.kernel.compute at {{.*}}:9
// CHECK: try: use smaller tensors, or split the operation in the model
