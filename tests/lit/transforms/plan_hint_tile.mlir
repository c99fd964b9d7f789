// RUN: spyre-opt %s -p plan,materialize-plan | filecheck %s
// RUN: spyre-opt %s -p plan,materialize-plan,divide-work | filecheck %s

// Kernels that ask for the same trips share a loop over blocks of 16 rows; the third asks for none.

// CHECK-LABEL: func.func @rows
// CHECK: [[TRIPS:%.+]] = arith.constant 4 : index
// CHECK: scf.for %{{.+}} = %{{.+}} to [[TRIPS]]
// CHECK: spyre.kernel.tile %{{.+}} dim 0 at %{{.+}} * 16
// CHECK: spyre.kernel.compute "exp" [m = 16
// CHECK-SAME: spyre.hint = {tile = {m = 4 : i64}}
// CHECK: spyre.kernel.compute "neg" [m = 16
// CHECK: }
// CHECK: spyre.kernel.compute "exp" [m = 64
// CHECK-SAME: spyre.hint = {tile = {m = 1 : i64}}
!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @rows(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf16> to !t
  %1 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64, n = 128] ins(%0[m, n] : !t) outs(%1[m, n] : !t) attributes {spyre.hint = {tile = {"0" = 4}}}
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "neg" [m = 64, n = 128] ins(%1[m, n] : !t) outs(%2[m, n] : !t) attributes {spyre.hint = {tile = {m = 4}}}
  %3 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64, n = 128] ins(%2[m, n] : !t) outs(%3[m, n] : !t) attributes {spyre.hint = {tile = {m = 1}}}
  %4 = spyre.kernel.from_device %3 : !t to tensor<64x128xf16>
  func.return %4 : tensor<64x128xf16>
}
