// RUN: spyre-opt -p decompose-aten %s | filecheck %s
// RUN: spyre-opt -p 'decompose-aten{cap=2}' %s | filecheck %s --check-prefix=CAP
// RUN: spyre-opt -p 'decompose-aten{cap=2 prefer-device=true}' %s | filecheck %s --check-prefix=DEVICE

// What has no entry, no composition for its arguments, or elements the device has no form for, stays whole. A view that
// only a host step reads is copied for it, and so stays on the host too.

// CHECK: %0 = aten.scaled_dot_product_attention{{.*}}host because "attention with dropout 0.5"
// CHECK: %1 = aten.t(%x) : {{.*}}
// CHECK-NEXT: %2 = aten.t(%x) host
// CHECK-NEXT: %3 = aten.call "aten.special_bessel_j1"(%2) {self = #aten.operands<1>} host because "the op table has no entry for it"
// CHECK-NEXT: %4 = aten._to_copy(%3) {{.*}}host because "the device has no form for elements of type f64"
// CHECK-NOT: aten.softmax
// CAP: aten.softmax.int{{.*}}host because "it would take more than 2 kernels"
// DEVICE-NOT: aten.softmax
func.func @main(%q: tensor<1x1x4x8xf32>, %x: tensor<4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<8x4xf64>, tensor<4x8xf32>) {
  %0 = aten.scaled_dot_product_attention(%q, %q, %q) {dropout_p = 0.5 : f64} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  %1 = aten.t(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = aten.call "aten.special_bessel_j1"(%1) {self = #aten.operands<1>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = aten._to_copy(%2) {dtype = f64} : (tensor<8x4xf32>) -> tensor<8x4xf64>
  %4 = aten.softmax.int(%x) {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %0, %3, %4 : tensor<1x1x4x8xf32>, tensor<8x4xf64>, tensor<4x8xf32>
}
