// RUN: spyre-opt -p convert-spyre-kernel-to-superdsc %s | filecheck %s --check-prefixes=BOTH,SYMBOLIC
// RUN: spyre-opt --pass-pipeline='builtin.module(convert-spyre-kernel-to-superdsc{addresses=concrete})' %s | filecheck %s --check-prefixes=BOTH,CONCRETE
// Two cores with one row each. The pool is a run-time allocation, or segment 0 with the arguments behind it.


!t = !spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %0 = spyre.kernel.to_device %x : tensor<2x64xf32> to !t
  %1 = spyre.kernel.alloc at 256 : i64 : !t
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 2 over 2, n = 64] ins(%0[m, n] : !t) outs(%1[m, n] : !t)
  spyre.kernel.compute "neg" [m = 2 over 2, n = 64] ins(%1[m, n] : !t) outs(%2[m, n] : !t)
  %3 = spyre.kernel.from_device %2 : !t to tensor<2x64xf32>
  func.return %3 : tensor<2x64xf32>
}

// BOTH:          superdsc.sdsc @"0_exp" splits {mb = 2, out = 1} attributes {labels = {mb = "m", out = "n"}} {
// BOTH-NEXT:       superdsc.dsc exp sizes {mb = 2, out = 64} classes {OUTPUT = [mb, out] stick {out = 64}} {
// SYMBOLIC-NEXT:     %a0 = superdsc.allocate 0 in hbm [mb, out] symbolic start -1 + -1 * mb
// SYMBOLIC-NEXT:     %a1 = superdsc.allocate 1 in hbm [mb, out] symbolic start -3 + -1 * mb
// CONCRETE-NEXT:     %a0 = superdsc.allocate 0 in hbm [mb, out] start 17179869184 + 128 * mb
// CONCRETE-NEXT:     %a1 = superdsc.allocate 1 in hbm [mb, out] start 256 + 128 * mb
// BOTH:          superdsc.sdsc @"1_neg"
// BOTH:          func.func @sdsc_bundle
// SYMBOLIC-NEXT:   %[[X:.*]] = sdscbundle.input_arg_extract
// SYMBOLIC-NEXT:   %[[STICK:.*]] = arith.constant 128 : index
// SYMBOLIC-NEXT:   %[[X1:.*]] = arith.addi %[[X]], %[[STICK]] : index
// SYMBOLIC-NEXT:   %[[POOL:.*]] = sdscbundle.device_mem_allocate 512 bytes : index
// SYMBOLIC:        sdscbundle.sdsc_execute (%[[X]], %[[X1]], %{{.*}}, %{{.*}}) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4]}
// CONCRETE-NEXT:   sdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"}
// BOTH:          func.func @main
// SYMBOLIC-NEXT:   %0 = spyre.kernel.to_device %x : tensor
// CONCRETE-NEXT:   %0 = spyre.kernel.to_device %x segment 1 : tensor
// CONCRETE-NEXT:   %1 = spyre.kernel.alloc segment 2 :
// BOTH:            spyre.kernel.launch @sdsc_bundle(%0, %1)
// SYMBOLIC-SAME:      : !spyre
// CONCRETE-SAME:     pool_bytes 512 : !spyre
