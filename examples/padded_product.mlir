// A product over 33 features, which are no whole stick, of a tensor that is read both ways round.
func.func @main(%x: tensor<4x33xf16>, %y: tensor<4x33xf16>) -> tensor<33x33xf16> {
  %0 = aten.exp(%x) : (tensor<4x33xf16>) -> tensor<4x33xf16>
  %1 = aten.cat(%0, %y) {dim = 0 : i64} : (tensor<4x33xf16>, tensor<4x33xf16>) -> tensor<8x33xf16>
  %2 = aten.t(%1) : (tensor<8x33xf16>) -> tensor<33x8xf16>
  %3 = aten.mm(%2, %1) : (tensor<33x8xf16>, tensor<8x33xf16>) -> tensor<33x33xf16>
  %4 = aten.arange.start_step() {start = 0 : i64, end = 33 : i64, step = 1 : i64} : () -> tensor<33xf16>
  %5 = aten.mm(%3, %3) : (tensor<33x33xf16>, tensor<33x33xf16>) -> tensor<33x33xf16>
  %6 = aten.add.Tensor(%5, %4) : (tensor<33x33xf16>, tensor<33xf16>) -> tensor<33x33xf16>
  func.return %6 : tensor<33x33xf16>
}
