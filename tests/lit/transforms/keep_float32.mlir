// RUN: spyre-opt -p "decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel{keep-float32=true}" %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s --check-prefix PLAIN

// float32 on request: sums and products have it; tanh has none, is marked for the report, and stands between conversions.

func.func @main(%x: tensor<4x65xf32>, %y: tensor<4x65xf32>) -> tensor<4x65xf32> {
  %0 = aten.add.Tensor(%x, %y) : (tensor<4x65xf32>, tensor<4x65xf32>) -> tensor<4x65xf32>
  %1 = aten.tanh(%0) : (tensor<4x65xf32>) -> tensor<4x65xf32>
  %2 = aten.mul.Tensor(%1, %y) : (tensor<4x65xf32>, tensor<4x65xf32>) -> tensor<4x65xf32>
  func.return %2 : tensor<4x65xf32>
}

// CHECK: spyre.kernel.compute "add" [d0 = 4, d1 = 65] ins({{.*}} x IEEE_FP32, {{.*}}) outs({{.*}} x IEEE_FP32,
// CHECK: spyre.kernel.convert [d0 = 4, d1 = 65] ins({{.*}} x IEEE_FP32, {{.*}}) outs({{.*}} x SEN169_FP16,
// CHECK: spyre.kernel.compute "tanh" [d0 = 4, d1 = 65] {{.*}} element f32 narrowed
// CHECK: spyre.kernel.convert [d0 = 4, d1 = 65] ins({{.*}} x SEN169_FP16, {{.*}}) outs({{.*}} x IEEE_FP32,
// CHECK: spyre.kernel.compute "mul" [d0 = 4, d1 = 65] ins({{.*}} x IEEE_FP32, {{.*}}) outs({{.*}} x IEEE_FP32,

// PLAIN-NOT: IEEE_FP32
// PLAIN-NOT: narrowed
