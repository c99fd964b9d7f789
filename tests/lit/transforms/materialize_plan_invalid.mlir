// RUN: not spyre-opt -p materialize-plan %s 2>&1 | filecheck %s
// RUN: not spyre-opt -p divide-work %s 2>&1 | filecheck %s --check-prefix EARLY

// 64 rows have no five equal blocks.

!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {spyre.loops = [{trips = [5]}]} {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf32> to !t
  %1 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64, n = 128] ins(%0[m, n] : !t) outs(%1[m, n] : !t) attributes {spyre.plan = {loop = 0, over = ["m"]}}
  %2 = spyre.kernel.from_device %1 : !t to tensor<64x128xf32>
  func.return %2 : tensor<64x128xf32>
}

// CHECK: error: [SPY-I002] exp cannot be in loop 0: 5 trips are no equal blocks of whole sticks, possible are 1, 2, 4, 8, 16, 32, 64
// CHECK: at: exp at {{.*}}:11
// CHECK: try: change spyre.loops of the function and spyre.plan of its kernels together, or take both away

// EARLY: error: [SPY-I002] the program notes loops, and nothing has put them around their kernels
// EARLY: try: run the pass materialize-plan before
