// RUN: spyre-opt %s --verify-diagnostics --split-input-file

!l = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, lx>
func.func @alloc_c1() {
  // expected-error@+1 {{byte 64 is not on a stick of 128 bytes; try a multiple}}
  %0 = spyre.kernel.alloc at 64 : i64 : !l
  func.return
}

// -----

!l = !spyre.tensor<[8192, 128] x SEN169_FP16, order [0, 1], stick 1, lx>
func.func @alloc_c2_overflow() {
  // expected-error@+1 {{bytes 1048576 to 2097152 of the scratchpad: a core has 1589376 for the program; try a lower address, more cores, or hbm for this buffer}}
  %0 = spyre.kernel.alloc at 1048576 : i64 : !l
  spyre.kernel.compute "exp" [m = 8192 over 2, n = 128] ins(%0[m, n] : !l) outs(%0[m, n] : !l)
  func.return
}

// -----

!l = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, lx>
func.func @alloc_c2_views() {
  // expected-error-re@+1 {{the buffer cannot be in LX: {{exp|neg}} takes it in slices {{.*}}: no core can hold both; try hbm}}
  %0 = spyre.kernel.alloc at 0 : i64 : !l
  spyre.kernel.compute "exp" [m = 64 over 2, n = 128] ins(%0[m, n] : !l) outs(%0[m, n] : !l)
  spyre.kernel.compute "neg" [m = 64, n = 128 over 2] ins(%0[m, n] : !l) outs(%0[m, n] : !l)
  func.return
}

// -----

!l = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, lx>
func.func @host(%x: tensor<64x128xf32>) {
  // expected-error@+1 {{the host cannot reach the scratchpads; try hbm and a copy}}
  %0 = spyre.kernel.to_device %x : tensor<64x128xf32> to !l
  func.return
}

// -----

!a = !spyre.tensor<[64, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!l = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 0, lx>
func.func @restickify_c2(%a: !a) {
  %0 = spyre.kernel.alloc at 0 : i64 : !l
  // expected-error@+1 {{a restickify stays inside one memory, here hbm to lx; try hbm for both}}
  spyre.kernel.restickify [m = 64, n = 64] ins(%a[m, n] : !a) outs(%0[m, n] : !l)
  func.return
}

// -----

!a = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>
!l = !spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, lx>
func.func @no_broadcast(%a: !a, %b: !spyre.tensor<[128] x SEN169_FP16, order [0], stick 0, lx>) {
  // expected-error@+1 {{add: input 1 is in LX: m is divided over 2 cores and walks 0 dimensions of this tensor}}
  spyre.kernel.compute "add" [m = 64 over 2, n = 128] ins(%a[m, n] : !a, %b[n] : !spyre.tensor<[128] x SEN169_FP16, order [0], stick 0, lx>) outs(%a[m, n] : !a)
  func.return
}
