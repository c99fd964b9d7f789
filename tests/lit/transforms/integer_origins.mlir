// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s

// What starts from integers is float32, weights it meets too; a function without a form on float32 is marked, and data ends it.

func.func @main(%i: tensor<65xi64> {aten.kind = "input"}, %w: tensor<65xf16> {aten.kind = "parameter"}, %x: tensor<65xf32> {aten.kind = "input"}) -> (tensor<65xf32>, tensor<65xf32>) {
  %0 = aten._to_copy(%i) {dtype = "f32"} : (tensor<65xi64>) -> tensor<65xf32>
  %1 = aten._to_copy(%w) {dtype = "f32"} : (tensor<65xf16>) -> tensor<65xf32>
  %2 = aten.mul.Tensor(%0, %1) : (tensor<65xf32>, tensor<65xf32>) -> tensor<65xf32>
  %3 = aten.log(%2) : (tensor<65xf32>) -> tensor<65xf32>
  %4 = aten.add.Tensor(%2, %x) : (tensor<65xf32>, tensor<65xf32>) -> tensor<65xf32>
  func.return %3, %4 : tensor<65xf32>, tensor<65xf32>
}

// CHECK: spyre.kernel.compute "mul" [d0 = 65] ins({{.*}} x IEEE_FP32, {{.*}} x IEEE_FP32, {{.*}}) outs({{.*}} x IEEE_FP32,
// CHECK: spyre.kernel.convert [d0 = 65] ins({{.*}} x IEEE_FP32, {{.*}}) outs({{.*}} x SEN169_FP16,
// CHECK: spyre.kernel.compute "log" [d0 = 65] ins({{.*}} x SEN169_FP16, {{.*}}) {{.*}} element f32 rounded
// CHECK-NOT: spyre.kernel.convert
// CHECK: spyre.kernel.compute "add" [d0 = 65] ins({{.*}} x SEN169_FP16, {{.*}} x SEN169_FP16, {{.*}}) outs({{.*}} x SEN169_FP16,
