// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Numbers limited to 448, two sticks of them put into one of eight-bit floats, and back: the rounding happens between.
// Cost: 4 SDSCs.

func.func @main(%x: tensor<4x130xf16>) -> tensor<4x130xf16> {
  %0 = aten._to_copy(%x) {dtype = f8E4M3FN} : (tensor<4x130xf16>) -> tensor<4x130xf8E4M3FN>
  %1 = aten._to_copy(%0) {dtype = f16} : (tensor<4x130xf8E4M3FN>) -> tensor<4x130xf16>
  func.return %1 : tensor<4x130xf16>
}

// CHECK: spyre.kernel.compute "minimum" [d0 = 4, d1 = 130]
// CHECK: spyre.kernel.compute "maximum" [d0 = 4, d1 = 130]
// CHECK: spyre.kernel.convert [d0 = 4, d1 = 130] ins({{.*}} x SEN169_FP16, {{.*}}) outs({{.*}} x SEN143_FP8, {{.*}}qfp8ch>)
// CHECK: spyre.kernel.convert [d0 = 4, d1 = 130] ins({{.*}} x SEN143_FP8, {{.*}}) outs({{.*}} x SEN169_FP16, {{.*}})
// CHECK: spyre.kernel.from_device {{.*}} to tensor<4x130xf16>

// COST: {{^}}4{{$}}
