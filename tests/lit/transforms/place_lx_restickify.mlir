// RUN: spyre-opt -p place-lx{restickify=true} %s --split-input-file | filecheck %s
// RUN: spyre-opt -p place-lx %s --split-input-file | filecheck %s --check-prefix DEFAULT

// By default a restickify works in HBM: its form between scratchpads is known from one research build only.
// DEFAULT-LABEL: @inside
// DEFAULT-NOT:   lx
// DEFAULT:       spyre.kernel.from_device

// On request a restickify works inside LX if both sides can be there, with all of the moved dimensions on one core.

!a = !spyre.tensor<[4, 64, 128] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!b = !spyre.tensor<[4, 64, 128] x SEN169_FP16, order [0, 2, 1], stick 1, hbm>

// CHECK-LABEL: @inside
// CHECK:       %[[A:.*]] = spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// CHECK:       %[[B:.*]] = spyre.kernel.alloc at 16384 : i64 : {{.*}}, lx>
// CHECK:       spyre.kernel.restickify {{.*}} ins(%[[A]]{{.*}} outs(%[[B]]
func.func @inside(%x: tensor<4x64x128xf32>) -> tensor<4x64x128xf32> {
  %0 = spyre.kernel.to_device %x : tensor<4x64x128xf32> to !a
  %1 = spyre.kernel.alloc : !a
  spyre.kernel.compute "exp" [h = 4 over 4, m = 64, n = 128] ins(%0[h, m, n] : !a) outs(%1[h, m, n] : !a)
  %2 = spyre.kernel.alloc : !b
  spyre.kernel.restickify [h = 4 over 4, m = 64, n = 128] ins(%1[h, m, n] : !a) outs(%2[h, m, n] : !b)
  %3 = spyre.kernel.alloc : !b
  spyre.kernel.compute "neg" [h = 4 over 4, m = 64, n = 128] ins(%2[h, m, n] : !b) outs(%3[h, m, n] : !b)
  %4 = spyre.kernel.from_device %3 : !b to tensor<4x64x128xf32>
  func.return %4 : tensor<4x64x128xf32>
}

// -----

// Here the host reads the result of the restickify, so its input stays in HBM too.

!a = !spyre.tensor<[4, 64, 128] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!b = !spyre.tensor<[4, 64, 128] x SEN169_FP16, order [0, 2, 1], stick 1, hbm>

// CHECK-LABEL: @across
// CHECK-NOT:   lx
// CHECK:       spyre.kernel.from_device
func.func @across(%x: tensor<4x64x128xf32>) -> tensor<4x64x128xf32> {
  %0 = spyre.kernel.to_device %x : tensor<4x64x128xf32> to !a
  %1 = spyre.kernel.alloc : !a
  spyre.kernel.compute "exp" [h = 4 over 4, m = 64, n = 128] ins(%0[h, m, n] : !a) outs(%1[h, m, n] : !a)
  %2 = spyre.kernel.alloc : !b
  spyre.kernel.restickify [h = 4 over 4, m = 64, n = 128] ins(%1[h, m, n] : !a) outs(%2[h, m, n] : !b)
  %4 = spyre.kernel.from_device %2 : !b to tensor<4x64x128xf32>
  func.return %4 : tensor<4x64x128xf32>
}

// -----

// exp divides rows and neg columns: no core has what it needs in its own scratchpad.

!a = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>

// CHECK-LABEL: @other_slices
// CHECK-NOT:   lx
// CHECK:       spyre.kernel.from_device
func.func @other_slices(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf32> to !a
  %1 = spyre.kernel.alloc : !a
  spyre.kernel.compute "exp" [m = 64 over 2, n = 128] ins(%0[m, n] : !a) outs(%1[m, n] : !a)
  %2 = spyre.kernel.alloc : !a
  spyre.kernel.compute "neg" [m = 64, n = 128 over 2] ins(%1[m, n] : !a) outs(%2[m, n] : !a)
  %3 = spyre.kernel.from_device %2 : !a to tensor<64x128xf32>
  func.return %3 : tensor<64x128xf32>
}

// -----

// The same slices, but the loops stand in another order, so other cores have them.

!a = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>

// CHECK-LABEL: @other_cores
// CHECK-NOT:   lx
// CHECK:       spyre.kernel.from_device
func.func @other_cores(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf32> to !a
  %1 = spyre.kernel.alloc : !a
  spyre.kernel.compute "exp" [m = 64 over 2, n = 128 over 2] ins(%0[m, n] : !a) outs(%1[m, n] : !a)
  %2 = spyre.kernel.alloc : !a
  spyre.kernel.compute "neg" [n = 128 over 2, m = 64 over 2] ins(%1[m, n] : !a) outs(%2[m, n] : !a)
  %3 = spyre.kernel.from_device %2 : !a to tensor<64x128xf32>
  func.return %3 : tensor<64x128xf32>
}

// -----

// A product needs all of its second operand on every core, and its summed loop is divided in the first.

!a = !spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>
!b = !spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!c = !spyre.tensor<[64, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>

// CHECK-LABEL: @product
// CHECK:       %[[B:.*]] = spyre.kernel.alloc : {{.*}}, hbm>
// CHECK:       "neg" {{.*}} outs(%[[B]][k, n]
// CHECK:       %[[C:.*]] = spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// CHECK:       "batchmatmul" {{.*}} outs(%[[C]][m, n]
func.func @product(%x: tensor<64x128xf32>, %y: tensor<128x64xf32>) -> tensor<64x64xf32> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf32> to !a
  %1 = spyre.kernel.to_device %y : tensor<128x64xf32> to !b
  %2 = spyre.kernel.alloc : !b
  spyre.kernel.compute "neg" [k = 128 over 2, n = 64] ins(%1[k, n] : !b) outs(%2[k, n] : !b)
  %3 = spyre.kernel.alloc : !c
  spyre.kernel.compute "batchmatmul" [m = 64 over 2, n = 64, k = 128] ins(%0[m, k] : !a, %2[k, n] : !b) outs(%3[m, n] : !c)
  %4 = spyre.kernel.alloc : !c
  spyre.kernel.compute "relufwd" [m = 64 over 2, n = 64] ins(%3[m, n] : !c) outs(%4[m, n] : !c)
  %5 = spyre.kernel.from_device %4 : !c to tensor<64x64xf32>
  func.return %5 : tensor<64x64xf32>
}
