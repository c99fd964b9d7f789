// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt -p decompose-aten | filecheck %s

// The structures of a call are on the first line as Python writes values, with nothing escaped.

// CHECK: builtin.module @m attributes {aten.input_leaves = ["x", "y"], aten.output_leaves = [0 : i64, 1 : i64], aten.input_tree = "(({'pair': (_, _)},), {})", aten.output_tree = "package.Output(logits=_, past=[_])"} {
builtin.module @m attributes {aten.input_leaves = ["x", "y"], aten.output_leaves = [0 : i64, 1 : i64], aten.input_tree = "(({'pair': (_, _)},), {})", aten.output_tree = "package.Output(logits=_, past=[_])"} {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    func.return %x, %y : tensor<4xf32>, tensor<4xf32>
  }
}
