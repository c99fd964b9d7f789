// relu(x @ w + b), as imported from torch; the README follows it through the levels.
// Written by `tools/generate.py` from `examples/affine_relu.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  func.func @main(%x: tensor<2x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<2x64xf32> {
    %0 = aten.mm(%x, %w) : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %1 = aten.add.Tensor(%0, %b) : (tensor<2x64xf32>, tensor<64xf32>) -> tensor<2x64xf32>
    %2 = aten.relu(%1) : (tensor<2x64xf32>) -> tensor<2x64xf32>
    func.return %2 : tensor<2x64xf32>
  }
}
