// RUN: spyre-opt %s --verify-diagnostics --split-input-file

!t = !spyre.tensor<[4, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @compute_c1(%a: !t, %o: !t) {
  // expected-error@+1 {{neg: index n + 1 starts inside a stick of 64; try a restickify of this operand}}
  spyre.kernel.compute "neg" [m = 4, n = 64] ins(%a[m, n + 1] : !t) outs(%o[m, n] : !t)
  func.return
}

// -----

!a = !spyre.tensor<[5, 100] x SEN169_FP16, order [1, 0], stick 1, hbm>
!b = !spyre.tensor<[100, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!o = !spyre.tensor<[5, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @compute_c1_padding(%a: !a, %b: !b, %o: !o) {
  // expected-error@+1 {{batchmatmul: input 1 is walked up to stick 127 and has 100: loops run over whole sticks; try larger extents in its layout}}
  spyre.kernel.compute "batchmatmul" [m = 5, n = 64, k = 100] ins(%a[m, k] : !a, %b[k, n] : !b) outs(%o[m, n] : !o)
  func.return
}

// -----

!t = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!u = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 0, hbm>
func.func @compute_c2(%a: !t, %b: !u) {
  // expected-error@+1 {{input 1 has m in the lanes, the result n in the lanes; try a restickify of this input}}
  spyre.kernel.compute "add" [m = 64, n = 64] ins(%a[m, n] : !t, %b[m, n] : !u) outs(%a[m, n] : !t)
  func.return
}

// -----

!t = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
!v = !spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>
func.func @compute_c2_reduction(%a: !t, %o: !v) {
  // expected-error@+1 {{the result has m in the lanes, expected no dimension in the lanes}}
  spyre.kernel.compute "sum" [m = 64, n = 64] ins(%a[m, n] : !t) outs(%o[m] : !v)
  func.return
}

// -----

!t = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @compute_c2_product(%a: !t, %b: !t, %o: !t) {
  // expected-error@+1 {{the first operand has m in the lanes, expected k in the lanes}}
  spyre.kernel.compute "batchmatmul" [m = 64, n = 64, k = 64] ins(%a[k, m] : !t, %b[k, n] : !t) outs(%o[m, n] : !t)
  func.return
}

// -----

!t = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @compute_c2_product_without_rows(%a: !t, %b: !t, %o: !t) {
  // expected-error@+1 {{the result of a product has m, which is in the map of neither operand}}
  spyre.kernel.compute "batchmatmul" [m = 64, n = 64, k = 64] ins(%a[0, k] : !t, %b[k, n] : !t) outs(%o[m, n] : !t)
  func.return
}

// -----

!t = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @compute_c2_product_without_sum(%a: !t, %b: !t, %o: !t) {
  // expected-error@+1 {{a product sums over k, which is not in the map of the second operand}}
  spyre.kernel.compute "batchmatmul" [m = 64, n = 64, k = 64] ins(%a[m, k] : !t, %b[0, n] : !t) outs(%o[m, n] : !t)
  func.return
}

// -----

!t = !spyre.tensor<[4, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @compute_c3(%a: !t, %o: !t) {
  // expected-error@+1 {{n has 128 elements, not divisible over 4 cores in pieces of 64; try a divisor}}
  spyre.kernel.compute "neg" [m = 4, n = 128 over 4] ins(%a[m, n] : !t) outs(%o[m, n] : !t)
  func.return
}

// -----

!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @compute_c3_cores(%a: !t, %o: !t) {
  // expected-error@+1 {{work is divided over 64 cores, the card has 32}}
  spyre.kernel.compute "neg" [m = 64 over 64, n = 128] ins(%a[m, n] : !t) outs(%o[m, n] : !t)
  func.return
}

// -----

!t = !spyre.tensor<[4, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @unknown_function(%a: !t, %o: !t) {
  // expected-error@+1 {{no op-table entry has the hardware function 'nag'}}
  spyre.kernel.compute "nag" [m = 4, n = 128] ins(%a[m, n] : !t) outs(%o[m, n] : !t)
  func.return
}

// -----

!t = !spyre.tensor<[4, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!l = !spyre.tensor<[4, 128] x SEN169_FP16, order [1, 0], stick 1, lx>
func.func @unknown_function_of_a_buffer(%a: !t) {
  %o = spyre.kernel.alloc at 0 : i64 : !l
  // expected-error@+1 {{no op-table entry has the hardware function 'nag'}}
  spyre.kernel.compute "nag" [m = 4, n = 128] ins(%a[m, n] : !t) outs(%o[m, n] : !l)
  func.return
}

// -----

!t = !spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @restickify_c1(%a: !t, %o: !t) {
  // expected-error@+1 {{a restickify moves one dimension out of the lanes and another in, got n in the lanes to n in the lanes}}
  spyre.kernel.restickify [m = 64, n = 64] ins(%a[m, n] : !t) outs(%o[m, n] : !t)
  func.return
}

// -----

!i = !spyre.tensor<[5] x SENUINT32, order [0], stick 0, hbm>
!t = !spyre.tensor<[10, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!o = !spyre.tensor<[5, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @gather_c1(%i: !i, %t: !t, %o: !o) {
  // expected-error@+1 {{the indexed dimension 0 must be outermost in the table's layout, there it is 1}}
  spyre.kernel.gather axis 0 [s = 5, h = 128] ins(%i[s] : !i, %t[0, h] : !t) outs(%o[s, h] : !o)
  func.return
}

// -----

!i = !spyre.tensor<[5] x SENUINT32, order [0], stick 0, hbm>
!t = !spyre.tensor<[10, 8, 128] x SEN169_FP16, order [1, 0, 2], stick 2, hbm>
!o = !spyre.tensor<[5, 8, 128] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
func.func @gather_c1_several_entries(%i: !i, %t: !t, %o: !o) {
  spyre.kernel.gather axis 0 [s = 5, n = 128] ins(%i[s] : !i, %t[0, 3, n] : !t) outs(%o[s, 3, n] : !o)
  // expected-error@+1 {{the indexed dimension 0 must be outermost in the table's layout, there it is 1}}
  spyre.kernel.gather axis 0 [s = 5, h = 8, n = 128] ins(%i[s] : !i, %t[0, h, n] : !t) outs(%o[s, h, n] : !o)
  func.return
}

// -----

!i = !spyre.tensor<[64] x SENUINT32, order [0], stick 0, hbm>
!t = !spyre.tensor<[10, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>
!o = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @gather_c3(%i: !i, %t: !t, %o: !o) {
  // expected-error@+1 {{h is divided over 2 cores and must be whole on every core; try to divide another loop}}
  spyre.kernel.gather axis 0 [s = 64 over 2, h = 128 over 2] ins(%i[s] : !i, %t[0, h] : !t) outs(%o[s, h] : !o)
  func.return
}

// -----

!i = !spyre.tensor<[64] x SENUINT32, order [0], stick 0, hbm>
!t = !spyre.tensor<[10, 128] x SEN169_FP16, order [0, 1], stick 1, lx>
!o = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, lx>
func.func @gather_c2(%i: !i, %t: !t, %o: !o) {
  // expected-error@+1 {{input 1 is in LX: a gather takes rows that are known at run time only, its inputs stay in HBM}}
  spyre.kernel.gather axis 0 [s = 64 over 2, h = 128] ins(%i[s] : !i, %t[0, h] : !t) outs(%o[s, h] : !o)
  func.return
}

// -----

!t = !spyre.tensor<[4, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @transfer(%a: tensor<4x64xf16>) {
  // expected-error@+1 {{the host tensor has shape (4, 64), the device tensor (4, 128)}}
  %0 = spyre.kernel.to_device %a : tensor<4x64xf16> to !t
  func.return
}

// -----

!t = !spyre.tensor<[4, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @transfer_c1(%a: tensor<4x64xf16>) {
  // expected-error@+1 {{the source of a move: index n + 1 runs over 1 to 64, dimension 1 has 64}}
  %0 = spyre.kernel.to_device %a moved [#spyre.move<[m = 4, n = 64] [m, n + 1] -> [m, n] of [4, 128]>] : tensor<4x64xf16> to !t
  func.return
}
