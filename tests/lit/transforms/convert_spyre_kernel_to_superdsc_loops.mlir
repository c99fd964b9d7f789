// RUN: spyre-opt -p convert-spyre-kernel-to-superdsc %s | filecheck %s
// RUN: spyre-opt -p 'convert-spyre-kernel-to-superdsc{loops=unroll}' %s | filecheck %s --check-prefix UNROLL
// RUN: spyre-opt -p 'convert-spyre-kernel-to-superdsc{loops=unroll addresses=concrete}' %s | filecheck %s --check-prefix CONCRETE
// RUN: not spyre-opt -p 'convert-spyre-kernel-to-superdsc{addresses=concrete}' %s 2>&1 | filecheck %s --check-prefix ERROR

// Blocks of 128 rows of 512: 128 * 128 bytes apart in a buffer of 512 rows of one stick. Two cores, 64 rows of each
// block; what is in LX does not advance.

!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
!l = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, lx>

func.func @main(%x: tensor<512x128xf16>) -> tensor<512x128xf16> {
  %d = spyre.kernel.to_device %x : tensor<512x128xf16> to !t
  %o = spyre.kernel.alloc : !t
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %dt = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !p
    %ot = spyre.kernel.tile %o dim 0 at %i * 128 : !t to !p
    %l = spyre.kernel.alloc at 256 : i64 : !l
    spyre.kernel.compute "exp" [m = 128 over 2, n = 128] ins(%dt[m, n] : !p) outs(%l[m, n] : !l)
    spyre.kernel.compute "neg" [m = 128 over 2, n = 128] ins(%l[m, n] : !l) outs(%ot[m, n] : !p)
  }
  %r = spyre.kernel.from_device %o : !t to tensor<512x128xf16>
  func.return %r : tensor<512x128xf16>
}

// The file says 128 rows of a buffer with a gap of 384 behind them, and the loop moves the start.
// CHECK-LABEL: superdsc.sdsc @"0_exp"
// CHECK:       %a0 = superdsc.allocate 0 in hbm [mb, out] symbolic start -1 + -1 * mb fields {back_gap = {"mb": {"-1": "384"}}}
// CHECK-NEXT:  %a1 = superdsc.allocate 1 in lx [mb, out] start 256
// CHECK:       func.func @sdsc_bundle
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:   %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-DAG:   %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:   %[[HALF:.*]] = arith.constant 8192 : index
// CHECK-DAG:   %[[A:.*]] = sdscbundle.input_arg_extract value from %arg_0_base_addr
// CHECK:       %[[A1:.*]] = arith.addi %[[A]], %[[HALF]] : index
// CHECK:       scf.for %[[I:.*]] = %[[ZERO]] to %[[FOUR]] step %[[ONE]] {
// CHECK-NEXT:    %[[P:.*]] = affine.apply affine_map<(d0)[s0] -> ((s0 + (d0 * 16384)))> (%[[I]])[%[[A]]]
// CHECK-NEXT:    %[[Q:.*]] = affine.apply affine_map<(d0)[s0] -> ((s0 + (d0 * 16384)))> (%[[I]])[%[[A1]]]
// CHECK-NEXT:    sdscbundle.sdsc_execute (%[[P]], %[[Q]]) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2]}
// CHECK:         sdscbundle.sdsc_execute (%{{.*}}, %{{.*}}) {sdsc_filename="sdsc_1.json", symbol_ids=[-3, -4]}
// CHECK-NEXT:  }
// CHECK-NEXT:  func.return
// CHECK:       func.func @main
// CHECK-NOT:   scf.for
// CHECK:       spyre.kernel.launch @sdsc_bundle

// UNROLL-NOT:   scf.for
// UNROLL:       sdscbundle.sdsc_execute {{.*}} {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2]}
// UNROLL:       sdscbundle.sdsc_execute {{.*}} {sdsc_filename="sdsc_7.json", symbol_ids=[-15, -16]}
// UNROLL-NEXT:  func.return

// CONCRETE:     sdscbundle.sdsc_execute () {sdsc_filename="sdsc_7.json"}

// ERROR: error: [SPY-L001] addresses in files cannot advance from trip to trip
// ERROR: try: use loops=unroll, or addresses=symbolic
