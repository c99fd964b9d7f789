// RUN: not spyre-opt -p convert-spyre-loop-to-spyre-kernel %s 2>&1 | filecheck %s

// The device has no 64-bit floats.

func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = spyre.loop.nest [d0 = 4] ins(%x[d0] : tensor<4xf64>) -> [d0] : tensor<4xf64> {
  ^bb0(%a: f64):
    spyre.loop.yield %a : f64
  }
  func.return %0 : tensor<4xf64>
}

// CHECK: error: [SPY-U001] the device has no form for elements of type f64
// CHECK: try: convert the model to float32 or float16
