// RUN: spyre-opt %s --verify-diagnostics --split-input-file

func.func @block_number_c1(%at: tensor<2xi64>) {
  // expected-error@+1 {{the position is tensor<2xi64>, expected a tensor of one integer}}
  %b = spyre.kernel.block_number of %at, blocks of 64 in 512 : tensor<2xi64>
  func.return
}

// -----

func.func @block_number_c2(%at: tensor<1xi64>) {
  // expected-error@+1 {{blocks of 64 do not divide 500 entries}}
  %b = spyre.kernel.block_number of %at, blocks of 64 in 500 : tensor<1xi64>
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c5_block(%d: !t, %at: tensor<1xi64>) {
  %b = spyre.kernel.block_number of %at, blocks of 64 in 512 : tensor<1xi64>
  // expected-error@+1 {{the tiles run over elements 0 to 576 of dimension 0, which has 512; try fewer trips, or a smaller step}}
  %p = spyre.kernel.tile %d dim 0 at %b * 64 : !t to !p
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c1_bound(%d: !t, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{the upper bound of the loop is no constant but comes from a block argument; loops on the device have constant bounds, try arith.constant}}
    %p = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !p
  }
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c1_trips(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = arith.constant 65536 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{the loop from 0 to 65536 by 1 makes 65536 trips, the device counts 1 to 65535; try larger tiles, or two nested loops}}
    spyre.kernel.compute "exp" [m = 512, n = 128] ins(%d[m, n] : !t) outs(%d[m, n] : !t)
  }
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c1_carried(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%k = %c0) -> (index) {
    // expected-error@+1 {{the loop carries 1 values from trip to trip, a bundle's loop carries none; try a buffer that is allocated before the loop and updated in place}}
    spyre.kernel.compute "exp" [m = 512, n = 128] ins(%d[m, n] : !t) outs(%d[m, n] : !t)
    scf.yield %k : index
  }
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c1_index(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error@+1 {{the start of a tile is a multiple of the induction variable of a loop around it}}
  %p = spyre.kernel.tile %d dim 0 at %c1 * 128 : !t to !p
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, lx>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], lx>
func.func @tile_c2(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    // expected-error@+1 {{a tile of a tensor in LX cannot advance from trip to trip; try hbm for the tensor}}
    %p = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !p
  }
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @tile_c3(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    // expected-error-re@+1 {{the tile is {{.*}}, expected !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>: a tile keeps format, layout and reserved extents of the tensor}}
    %p = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !p
  }
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[512, 64] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c4(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error@+1 {{tiles of 64 elements, 32 apart, cut the sticks of 64 of dimension 1; try multiples of 64}}
    %p = spyre.kernel.tile %d dim 1 at %i * 32 : !t to !p
  }
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c5(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    // expected-error@+1 {{the tiles run over elements 0 to 640 of dimension 0, which has 512; try fewer trips, or a smaller step}}
    %p = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !p
  }
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c6_walk(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    // expected-error@+1 {{exp walks index m up to 255, the tile has 128 elements in dimension 0}}
    %p = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !p
    spyre.kernel.compute "exp" [m = 256, n = 128] ins(%p[m, n] : !p) outs(%p[m, n] : !p)
  }
  func.return
}

// -----

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @tile_c6_use(%d: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    // expected-error@+1 {{spyre.kernel.from_device cannot use a tile; try the whole tensor}}
    %p = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !p
    %h = spyre.kernel.from_device %p : !p to tensor<128x128xf16>
  }
  func.return
}
