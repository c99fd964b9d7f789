// RUN: spyre-opt -p fold-sinks %s | filecheck %s

// A column of sinks takes part in the softmax of scores, and is dropped: a term of the sum.

// CHECK:      func.func @shifted
// CHECK-NEXT: %[[MOST:.*]] = aten.amax(%scores) {dim = array<i64: -1>, keepdim = true} : (tensor<8x16x64xf16>) -> tensor<8x16x1xf16>
// CHECK-NEXT: %[[LARGEST:.*]] = aten.maximum(%[[MOST]], %sink) : (tensor<8x16x1xf16>, tensor<8x16x1xf16>) -> tensor<8x16x1xf16>
// CHECK-NEXT: %[[LESS:.*]] = aten.sub.Tensor(%scores, %[[LARGEST]]) : (tensor<8x16x64xf16>, tensor<8x16x1xf16>) -> tensor<8x16x64xf16>
// CHECK-NEXT: %[[SUNK:.*]] = aten.sub.Tensor(%sink, %[[LARGEST]]) : (tensor<8x16x1xf16>, tensor<8x16x1xf16>) -> tensor<8x16x1xf16>
// CHECK-NEXT: %[[PART:.*]] = aten.call "spyre::softmax_beside"(%[[LESS]], %[[SUNK]]) {dim = -1 : i64} : (tensor<8x16x64xf16>, tensor<8x16x1xf16>) -> tensor<8x16x64xf16>
// CHECK-NEXT: func.return %[[PART]]
func.func @shifted(%scores: tensor<8x16x64xf16>, %sink: tensor<8x16x1xf16>) -> tensor<8x16x64xf16> {
  %joined = aten.cat(%scores, %sink) {dim = -1} : (tensor<8x16x64xf16>, tensor<8x16x1xf16>) -> tensor<8x16x65xf16>
  %largest, %place = aten.max.dim(%joined) {dim = -1, keepdim = true} : (tensor<8x16x65xf16>) -> (tensor<8x16x1xf16>, tensor<8x16x1xi64>)
  %less = aten.sub.Tensor(%joined, %largest) : (tensor<8x16x65xf16>, tensor<8x16x1xf16>) -> tensor<8x16x65xf16>
  %all = aten.softmax.int(%less) {dim = -1} : (tensor<8x16x65xf16>) -> tensor<8x16x65xf16>
  %part = aten.slice.Tensor(%all) {dim = 2, start = 0, end = -1} : (tensor<8x16x65xf16>) -> tensor<8x16x64xf16>
  func.return %part : tensor<8x16x64xf16>
}

// CHECK:      func.func @all_are_read
// CHECK-NEXT: aten.cat
func.func @all_are_read(%scores: tensor<8x16x64xf16>, %sink: tensor<8x16x1xf16>) -> tensor<8x16x65xf16> {
  %joined = aten.cat(%scores, %sink) {dim = -1} : (tensor<8x16x64xf16>, tensor<8x16x1xf16>) -> tensor<8x16x65xf16>
  %all = aten.softmax.int(%joined) {dim = -1} : (tensor<8x16x65xf16>) -> tensor<8x16x65xf16>
  func.return %all : tensor<8x16x65xf16>
}
