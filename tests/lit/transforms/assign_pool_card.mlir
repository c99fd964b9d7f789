// RUN: not spyre-opt %s -p assign-pool 2>&1 | filecheck %s

// CHECK: weights, inputs and results take 137438953472 bytes, the card has 120259084288
// CHECK: try: use a smaller model
func.func @main(%w: tensor<1048576x65536xf32>) {
  %0 = spyre.kernel.to_device %w : tensor<1048576x65536xf32> to !spyre.tensor<[1048576, 65536] x SEN169_FP16, order [1, 0], stick 1, hbm>
  func.return
}
