// RUN: not spyre-opt -p decompose-aten %s 2>&1 | filecheck %s

// Dropout in attention is for training.

func.func @main(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %0 = aten.scaled_dot_product_attention(%q, %q, %q) {dropout_p = 0.5 : f64} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  func.return %0 : tensor<1x1x4x8xf32>
}

// CHECK: error: [SPY-U001] attention with dropout 0.5
// CHECK: at: aten.scaled_dot_product_attention at {{.*}}:6
// CHECK: try: call model.eval() before export
