// RUN: spyre-opt %s --verify-diagnostics --split-input-file

!t = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!v = !spyre.tensor<[8, 1024] x SEN169_FP16, order [0, 1], stick 1, lx>
func.func @view_c1(%d: !t) {
  // expected-error@+1 {{a view of hbm in lx: in LX each core has a slice of its own; try hbm for both}}
  %v = spyre.kernel.view %d : !t to !v
  func.return
}

// -----

!t = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!v = !spyre.tensor<[128, 32] x IEEE_FP32, order [0, 1], stick 1, hbm>
func.func @view_c2(%d: !t) {
  // expected-error@+1 {{sticks of SEN169_FP16, standard, seen as IEEE_FP32, standard; try a spyre.kernel.convert}}
  %v = spyre.kernel.view %d : !t to !v
  func.return
}

// -----

!t = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!v = !spyre.tensor<[8, 1025] x SEN169_FP16, order [0, 1], stick 1, hbm>
func.func @view_c3(%d: !t) {
  // expected-error@+1 {{the view has 136 sticks, the buffer 128; try smaller extents}}
  %v = spyre.kernel.view %d : !t to !v
  func.return
}

// -----

!t = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
func.func @view_c4_of_a_view(%d: !t) {
  // expected-error@+1 {{spyre.kernel.view cannot use a view; try the buffer behind it}}
  %v = spyre.kernel.view %d : !t to !t
  %w = spyre.kernel.view %v : !t to !t
  func.return
}

// -----

!t = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!p = !spyre.tensor<[64, 64] x SEN169_FP16, order [0, 1], stick 1, extents [128, 64], hbm>
func.func @view_c4_of_a_tile(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    // expected-error@+1 {{spyre.kernel.view cannot use a tile; try the whole tensor}}
    %p = spyre.kernel.tile %d dim 0 at %i * 64 : !t to !p
    %v = spyre.kernel.view %p : !p to !p
  }
  func.return
}

// -----

!t = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
func.func @view_c4_written(%d: !t, %e: !t) {
  // expected-error@+1 {{exp writes through a view; try to write the buffer itself}}
  %v = spyre.kernel.view %d : !t to !t
  spyre.kernel.compute "exp" [m = 128, n = 64] ins(%e[m, n] : !t) outs(%v[m, n] : !t)
  func.return
}

// -----

!t = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
func.func @view_c4_sent(%d: !t) {
  // expected-error@+1 {{spyre.kernel.from_device cannot use a view; try the buffer behind it}}
  %v = spyre.kernel.view %d : !t to !t
  %r = spyre.kernel.from_device %v : !t to tensor<128x64xf16>
  func.return
}
