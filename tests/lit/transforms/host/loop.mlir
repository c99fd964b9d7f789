// RUN: spyre-opt -p convert-aten-to-spyre-loop,schedule-host-steps %s | filecheck %s

// A host step takes and gives tensors as the model has them. The product waits for no host step, so it comes before
// the one that waits for the device: two launches, not three.

// CHECK: spyre.loop.nest [d0
// CHECK: spyre.loop.nest {{.*}}"arith.addf"
// CHECK: %{{.*}}, %{{.*}} = spyre.loop.host "aten.topk" because "no entry" (%{{.*}}) {self = #aten.operands<1>, k = 3 : i64} : (tensor<8x32xf32>) -> (tensor<8x3xf32>, tensor<8x3xi64>)
// CHECK: spyre.loop.nest
// CHECK: func.return
func.func @main(%x: tensor<8x32xf32>, %w: tensor<32x32xf32>) -> (tensor<8x3xf32>, tensor<8x3xi64>, tensor<8x32xf32>) {
  %0 = aten.relu(%x) : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %1, %2 = aten.call "aten.topk"(%0) {self = #aten.operands<1>, k = 3 : i64} host because "no entry" : (tensor<8x32xf32>) -> (tensor<8x3xf32>, tensor<8x3xi64>)
  %3 = aten.exp(%1) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %4 = aten.mm(%x, %w) : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
  func.return %3, %2, %4 : tensor<8x3xf32>, tensor<8x3xi64>, tensor<8x32xf32>
}
