// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt --print-op-generic | filecheck %s --check-prefix GENERIC

// CHECK-LABEL: func.func @ops
func.func @ops(%a: tensor<4x8xf32>, %b: tensor<2x4x6xf32>, %ids: tensor<3xi64>) {
  // CHECK-NEXT: spyre.loop.constant 2.500000e+00 : f32 : tensor<4x8xf32>
  // GENERIC: "spyre.loop.constant"() <{value = 2.500000e+00 : f32}>
  %0 = spyre.loop.constant 2.5 : f32 : tensor<4x8xf32>
  // CHECK-NEXT: spyre.loop.constant #spyre.iota<0.0, -1.5> : tensor<8xf32>
  // GENERIC: "spyre.loop.constant"() <{value = #spyre.iota<0.0, -1.5>}>
  %1 = spyre.loop.constant #spyre.iota<0, -1.5> : tensor<8xf32>
  // CHECK-NEXT: spyre.loop.empty : tensor<8x8xf32>
  // GENERIC: "spyre.loop.empty"() : () -> tensor<8x8xf32>
  %2 = spyre.loop.empty : tensor<8x8xf32>
  // CHECK-NEXT: spyre.loop.nest [h = 2, m = 4, n = 6, k = 4] ins(%a[m, h * 4 + k] : tensor<4x8xf32>, %b[h, k, n] : tensor<2x4x6xf32>) -> [h, m, n] : tensor<2x4x6xf32> reduce "arith.addf" {
  // GENERIC: space = #spyre.space<h = 2, m = 4, n = 6, k = 4>, maps = [#spyre.map<m, h * 4 + k>, #spyre.map<h, k, n>, #spyre.map<h, m, n>], combine = "arith.addf"
  %3 = spyre.loop.nest [h = 2, m = 4, n = 6, k = 4] ins(%a[m, h * 4 + k] : tensor<4x8xf32>, %b[h, k, n] : tensor<2x4x6xf32>)
      -> [h, m, n] : tensor<2x4x6xf32> reduce "arith.addf" {
  ^bb0(%x: f32, %y: f32):
    // CHECK: arith.mulf
    %z = arith.mulf %x, %y : f32
    // CHECK-NEXT: spyre.loop.yield %{{.*}} : f32
    spyre.loop.yield %z : f32
  }
  // CHECK: spyre.loop.nest [i = 4, j = 8] ins(%a[i * -1 + 3, j] : tensor<4x8xf32>) into %{{.*}} -> [i + 4, j] : tensor<8x8xf32>
  %4 = spyre.loop.nest [i = 4, j = 8] ins(%a[3 - i, j] : tensor<4x8xf32>) into %2 -> [i + 4, j] : tensor<8x8xf32> {
  ^bb0(%x: f32):
    // CHECK: spyre.loop.apply "silu"(%{{.*}}) : (f32) -> f32
    // GENERIC: "spyre.loop.apply"(%{{.*}}) <{function = "silu"}>
    %z = spyre.loop.apply "silu"(%x) : (f32) -> f32
    spyre.loop.yield %z : f32
  }
  // CHECK: spyre.loop.nest [j = 8] ins(%{{.*}}[j] : tensor<8xf32>) -> [j] : tensor<8xf32> {
  %6 = spyre.loop.nest [j = 8] ins(%1[j] : tensor<8xf32>) -> [j] : tensor<8xf32> {
  ^bb0(%x: f32):
    // CHECK: spyre.loop.apply "softplus"(%{{.*}}) {beta = 2.000000e+00 : f64, threshold = 8.000000e+00 : f64} : (f32) -> f32
    // GENERIC: "spyre.loop.apply"(%{{.*}}) <{function = "softplus", numbers = {beta = 2.000000e+00 : f64, threshold = 8.000000e+00 : f64}}>
    %z = spyre.loop.apply "softplus"(%x) {beta = 2.0 : f64, threshold = 8.0 : f64} : (f32) -> f32
    spyre.loop.yield %z : f32
  }
  // CHECK: spyre.loop.gather [s = 3, h = 8] rows(%ids[s] : tensor<3xi64>) of axis 0 in %a[0, h] : tensor<4x8xf32> -> [s, h] : tensor<3x8xf32>
  // GENERIC: "spyre.loop.gather"
  %5 = spyre.loop.gather [s = 3, h = 8] rows(%ids[s] : tensor<3xi64>) of axis 0 in %a[0, h] : tensor<4x8xf32> -> [s, h] : tensor<3x8xf32>
  func.return
}

// CHECK-LABEL: func.func @blocks
func.func @blocks(%x: tensor<2x256xf16>, %at: tensor<1xi64>) -> tensor<2x256xf16> {
  // CHECK: spyre.loop.block %{{.*}} dim 1 at %{{.*}} : tensor<2x256xf16>, tensor<1xi64> -> tensor<2x64xf16>
  %b = spyre.loop.block %x dim 1 at %at : tensor<2x256xf16>, tensor<1xi64> -> tensor<2x64xf16>
  // CHECK: spyre.loop.block %{{.*}} dim 1 at %{{.*}} plus 1 from_end : tensor<2x256xf16>
  %c = spyre.loop.block %x dim 1 at %at plus 1 from_end : tensor<2x256xf16>, tensor<1xi64> -> tensor<2x64xf16>
  // CHECK: spyre.loop.put %{{.*}} into %{{.*}} dim 1 at %{{.*}} : tensor<2x64xf16>, tensor<2x256xf16>, tensor<1xi64> -> tensor<2x256xf16>
  %y = spyre.loop.put %b into %x dim 1 at %at : tensor<2x64xf16>, tensor<2x256xf16>, tensor<1xi64> -> tensor<2x256xf16>
  func.return %y : tensor<2x256xf16>
}
