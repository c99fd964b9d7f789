// RUN: spyre-opt -p turn-heads %s | filecheck %s

// Halves of 64 channels are no whole sticks: the second comes before the first by a product, with its sign changed.

// CHECK:      func.func @halves
// CHECK-NEXT: %[[MATRIX:.*]] = aten.call "spyre::resample"() {size = array<i64: 64, 64>, mode = "turned", scale = 3.200000e+01 : f64, dtype = f16}
// CHECK-NEXT: %[[TURNED:.*]] = aten.linear(%x, %[[MATRIX]]) : (tensor<4x8x64xf16>, tensor<64x64xf16>) -> tensor<4x8x64xf16>
// CHECK-NEXT: func.return %[[TURNED]]
func.func @halves(%x: tensor<4x8x64xf16>) -> tensor<4x8x64xf16> {
  %first = aten.slice.Tensor(%x) {dim = 2, start = 0, end = 32} : (tensor<4x8x64xf16>) -> tensor<4x8x32xf16>
  %second = aten.slice.Tensor(%x) {dim = 2, start = 32, end = 64} : (tensor<4x8x64xf16>) -> tensor<4x8x32xf16>
  %minus = aten.neg(%second) : (tensor<4x8x32xf16>) -> tensor<4x8x32xf16>
  %turned = aten.cat(%minus, %first) {dim = -1} : (tensor<4x8x32xf16>, tensor<4x8x32xf16>) -> tensor<4x8x64xf16>
  func.return %turned : tensor<4x8x64xf16>
}

// Neighbours in 128 channels, widened to float32 before they are turned: the product reads what was widened.

// CHECK:      func.func @pairs
// CHECK:      %[[PAIRS:.*]] = aten.call "spyre::resample"() {size = array<i64: 128, 128>, mode = "turned", scale = 1.000000e+00 : f64, dtype = f16}
// CHECK-NEXT: %[[NARROW:.*]] = aten.linear(%x, %[[PAIRS]]) : (tensor<4x128xf16>, tensor<128x128xf16>) -> tensor<4x128xf16>
// CHECK-NEXT: aten._to_copy(%[[NARROW]]) {dtype = f32} wide : (tensor<4x128xf16>) -> tensor<4x128xf32>
func.func @pairs(%x: tensor<4x128xf16>) -> tensor<4x128xf32> {
  %wide = aten._to_copy(%x) {dtype = f32} wide : (tensor<4x128xf16>) -> tensor<4x128xf32>
  %even = aten.slice.Tensor(%wide) {dim = 1, start = 0, end = 128, step = 2} wide : (tensor<4x128xf32>) -> tensor<4x64xf32>
  %odd = aten.slice.Tensor(%wide) {dim = 1, start = 1, end = 128, step = 2} wide : (tensor<4x128xf32>) -> tensor<4x64xf32>
  %minus = aten.neg(%odd) wide : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %stack = aten.stack(%minus, %even) {dim = -1} wide : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64x2xf32>
  %turned = aten.view(%stack) {size = [4, 128]} wide : (tensor<4x64x2xf32>) -> tensor<4x128xf32>
  func.return %turned : tensor<4x128xf32>
}
