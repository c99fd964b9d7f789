// Rows of a table, each weighted by a softmax over its features.
func.func @main(%table: tensor<100x128xf16>, %ids: tensor<64xi64>) -> tensor<64x128xf16> {
  %0 = aten.embedding(%table, %ids) : (tensor<100x128xf16>, tensor<64xi64>) -> tensor<64x128xf16>
  %1 = aten.softmax.int(%0) {dim = -1 : i64} : (tensor<64x128xf16>) -> tensor<64x128xf16>
  %2 = aten.mul.Tensor(%0, %1) : (tensor<64x128xf16>, tensor<64x128xf16>) -> tensor<64x128xf16>
  func.return %2 : tensor<64x128xf16>
}
