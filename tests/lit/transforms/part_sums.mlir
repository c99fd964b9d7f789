// RUN: spyre-opt -p part-sums --split-input-file %s | filecheck %s

// Each part has its columns of the weight, and the widest has the bias.
// CHECK-LABEL: @layer
// CHECK:      [[A:%.+]] = aten.slice.Tensor(%w) {dim = 1 : i64, start = 27 : i64, end = 90 : i64
// CHECK:      [[Y:%.+]] = aten.linear(%b, [[A]], %c)
// CHECK:      [[B:%.+]] = aten.slice.Tensor(%w) {dim = 1 : i64, start = 0 : i64, end = 27 : i64
// CHECK:      [[Z:%.+]] = aten.linear(%a, [[B]])
// CHECK:      aten.add.Tensor([[Y]], [[Z]])
// CHECK-NOT:  aten.cat
func.func @layer(%a: tensor<512x27xf16>, %b: tensor<512x63xf16>, %w: tensor<256x90xf16> {aten.kind = "parameter"}, %c: tensor<256xf16> {aten.kind = "parameter"}) -> tensor<512x256xf16> {
  %0 = aten.cat(%a, %b) {dim = -1 : i64} : (tensor<512x27xf16>, tensor<512x63xf16>) -> tensor<512x90xf16>
  %1 = aten.linear(%0, %w, %c) : (tensor<512x90xf16>, tensor<256x90xf16>, tensor<256xf16>) -> tensor<512x256xf16>
  func.return %1 : tensor<512x256xf16>
}

// -----

// Whole sticks lie side by side as they are.
// CHECK-LABEL: @sticks
// CHECK:      aten.cat
func.func @sticks(%a: tensor<512x64xf16>, %b: tensor<512x63xf16>, %w: tensor<256x127xf16> {aten.kind = "parameter"}) -> tensor<512x256xf16> {
  %0 = aten.cat(%a, %b) {dim = -1 : i64} : (tensor<512x64xf16>, tensor<512x63xf16>) -> tensor<512x127xf16>
  %1 = aten.linear(%0, %w) : (tensor<512x127xf16>, tensor<256x127xf16>) -> tensor<512x256xf16>
  func.return %1 : tensor<512x256xf16>
}

// -----

// A weight that a call brings is laid out as it comes, and would be again for each part.
// CHECK-LABEL: @input
// CHECK:      aten.cat
func.func @input(%a: tensor<512x27xf16>, %b: tensor<512x63xf16>, %w: tensor<256x90xf16>) -> tensor<512x256xf16> {
  %0 = aten.cat(%a, %b) {dim = -1 : i64} : (tensor<512x27xf16>, tensor<512x63xf16>) -> tensor<512x90xf16>
  %1 = aten.linear(%0, %w) : (tensor<512x90xf16>, tensor<256x90xf16>) -> tensor<512x256xf16>
  func.return %1 : tensor<512x256xf16>
}
