// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop %s | filecheck %s --check-prefix LOOP
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s

// Arguments that are no tensors: named as ATen names them at the level of loops, as the file does at that of kernels.

func.func @main(%x: tensor<4x65xf32>) -> tensor<4x65xf32> {
  %0 = aten.softplus(%x) {beta = 2.0, threshold = 8.0} : (tensor<4x65xf32>) -> tensor<4x65xf32>
  func.return %0 : tensor<4x65xf32>
}

// LOOP: spyre.loop.apply "softplus"(%{{.*}}) {beta = 2.000000e+00 : f64, threshold = 8.000000e+00 : f64} : (f32) -> f32

// CHECK: spyre.kernel.compute "softplus" [d0 = 4, d1 = 65] {{.*}} element f32 op_info {softplusBeta = 2.000000e+00 : f64, softplusThresh = 8.000000e+00 : f64}
