// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// A step of long short-term memory whose gates are whole sticks: a product, an addition, and 8 operations on slices.
// Cost: 12 SDSCs with the input's product and the copy of the result; 11 for each step more, its copy among them.
// A step of gated recurrent units takes 11.

func.func @main(%x: tensor<1x1x64xf16>, %h: tensor<1x1x64xf16>, %c: tensor<1x1x64xf16>, %wi: tensor<256x64xf16> {aten.kind = "parameter"}, %wh: tensor<256x64xf16> {aten.kind = "parameter"}) -> tensor<1x1x64xf16> {
  %0, %1, %2 = aten.lstm.input(%x, %h, %c, %wi, %wh) {hx = #aten.operands<2>, has_biases = false, num_layers = 1 : i64, dropout = 0.0, train = false, bidirectional = false, batch_first = false} : (tensor<1x1x64xf16>, tensor<1x1x64xf16>, tensor<1x1x64xf16>, tensor<256x64xf16>, tensor<256x64xf16>) -> (tensor<1x1x64xf16>, tensor<1x1x64xf16>, tensor<1x1x64xf16>)
  func.return %0 : tensor<1x1x64xf16>
}

func.func @two(%x: tensor<2x1x64xf16>, %h: tensor<1x1x64xf16>, %c: tensor<1x1x64xf16>, %wi: tensor<256x64xf16> {aten.kind = "parameter"}, %wh: tensor<256x64xf16> {aten.kind = "parameter"}) -> tensor<2x1x64xf16> {
  %0, %1, %2 = aten.lstm.input(%x, %h, %c, %wi, %wh) {hx = #aten.operands<2>, has_biases = false, num_layers = 1 : i64, dropout = 0.0, train = false, bidirectional = false, batch_first = false} : (tensor<2x1x64xf16>, tensor<1x1x64xf16>, tensor<1x1x64xf16>, tensor<256x64xf16>, tensor<256x64xf16>) -> (tensor<2x1x64xf16>, tensor<1x1x64xf16>, tensor<1x1x64xf16>)
  func.return %0 : tensor<2x1x64xf16>
}

func.func @gru(%x: tensor<1x1x64xf16>, %h: tensor<1x1x64xf16>, %wi: tensor<192x64xf16> {aten.kind = "parameter"}, %wh: tensor<192x64xf16> {aten.kind = "parameter"}) -> tensor<1x1x64xf16> {
  %0, %1 = aten.gru.input(%x, %h, %wi, %wh) {has_biases = false, num_layers = 1 : i64, dropout = 0.0, train = false, bidirectional = false, batch_first = false} : (tensor<1x1x64xf16>, tensor<1x1x64xf16>, tensor<192x64xf16>, tensor<192x64xf16>) -> (tensor<1x1x64xf16>, tensor<1x1x64xf16>)
  func.return %0 : tensor<1x1x64xf16>
}

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: spyre.kernel.compute "batchmatmul" [n = 256, k = 64]
// CHECK: spyre.kernel.compute "add" [d1 = 256]
// CHECK: spyre.kernel.compute "sigmoid" [d1 = 128]
// CHECK: spyre.kernel.compute "tanh" [d1 = 64] ins(%{{.*}}[0, d1 + 128] :
// CHECK: spyre.kernel.compute "sigmoid" [d1 = 64] ins(%{{.*}}[0, d1 + 192] :
// CHECK-COUNT-2: spyre.kernel.compute "mul" [d1 = 64]
// CHECK: spyre.kernel.compute "add" [d1 = 64]
// CHECK: spyre.kernel.compute "tanh" [d1 = 64]
// CHECK: spyre.kernel.compute "mul" [d1 = 64]
// CHECK: spyre.kernel.compute "identity"

// CHECK-LABEL: func.func @two
// CHECK-COUNT-2: spyre.kernel.compute "batchmatmul"
// CHECK-COUNT-4: spyre.kernel.compute "tanh" [d1 = 64]

// CHECK-LABEL: func.func @gru
// CHECK-COUNT-2: spyre.kernel.compute "batchmatmul" [n = 192, k = 64]
// CHECK: spyre.kernel.compute "sigmoid" [d1 = 128]
// CHECK: spyre.kernel.compute "tanh" [d1 = 64]

// COST: {{^}}46{{$}}
