// RUN: not spyre-opt -p assign-pool %s 2>&1 | filecheck %s

// 15 GiB and one stick in a pool of 15 GiB.

!t = !spyre.tensor<[125829121, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main() {
  %0 = spyre.kernel.alloc : !t
  func.return
}

// CHECK: error: [SPY-L001] the pool has 16106127360 bytes, no 16106127488 of them free for this buffer
// CHECK: at: spyre.kernel.alloc at {{.*}}:8
// CHECK: try: use a smaller batch or sequence
