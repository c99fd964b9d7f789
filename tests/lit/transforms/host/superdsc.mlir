// RUN: spyre-opt -p convert-spyre-loop-to-spyre-kernel,divide-work,place-lx,assign-pool %s | filecheck %s --check-prefix=KERNEL
// RUN: spyre-opt -p convert-spyre-loop-to-spyre-kernel,divide-work,place-lx,assign-pool,convert-spyre-kernel-to-superdsc %s | filecheck %s

// Kernels before and behind a host step are two launches. What both use is a tensor of its own: %kept has no place in
// the pool or the scratchpads. What only one launch uses has (here in the scratchpads).

// KERNEL: %[[KEPT:.*]] = spyre.kernel.alloc : !spyre.tensor<[8, 64]
// KERNEL: compute "exp" {{.*}}outs(%[[KEPT]]
// KERNEL: %[[OUT:.*]] = spyre.kernel.from_device %[[KEPT]]
// KERNEL: %[[BACK:.*]] = spyre.kernel.host "aten.special_bessel_j1" because "no entry" (%[[OUT]])
// KERNEL: spyre.kernel.to_device %[[BACK]]
// KERNEL: alloc at 0 {{.*}}lx>
// KERNEL: compute "mul"
// KERNEL: compute "relufwd"

// CHECK: func.func @sdsc_bundle_0
// CHECK: sdsc_filename="sdsc_0.json"
// CHECK: func.func @sdsc_bundle_1
// CHECK: sdsc_filename="sdsc_1.json"
// CHECK: sdsc_filename="sdsc_2.json"
// CHECK: func.func @main
// CHECK: spyre.kernel.launch @sdsc_bundle_0(%0, %1)
// CHECK: spyre.kernel.from_device %1
// CHECK: spyre.kernel.host
// CHECK: spyre.kernel.launch @sdsc_bundle_1(%1, %{{.*}}, %{{.*}})
func.func @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = spyre.loop.nest [a = 8, b = 64] ins(%x[a, b] : tensor<8x64xf32>) -> [a, b] : tensor<8x64xf32> {
  ^bb0(%e: f32):
    %1 = math.exp %e : f32
    spyre.loop.yield %1 : f32
  }
  %2 = spyre.loop.host "aten.special_bessel_j1" because "no entry" (%0) {self = #aten.operands<1>} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %3 = spyre.loop.nest [a = 8, b = 64] ins(%0[a, b] : tensor<8x64xf32>, %2[a, b] : tensor<8x64xf32>) -> [a, b] : tensor<8x64xf32> {
  ^bb0(%e: f32, %f: f32):
    %4 = arith.mulf %e, %f : f32
    spyre.loop.yield %4 : f32
  }
  %5 = spyre.loop.nest [a = 8, b = 64] ins(%3[a, b] : tensor<8x64xf32>) -> [a, b] : tensor<8x64xf32> {
  ^bb0(%e: f32):
    %6 = spyre.loop.apply "relu"(%e) : (f32) -> f32
    spyre.loop.yield %6 : f32
  }
  func.return %5 : tensor<8x64xf32>
}
