// RUN: not spyre-opt -p convert-spyre-loop-to-spyre-kernel %s 2>&1 | filecheck %s

// The device has no 8-bit integers that a model can compute on.

func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = spyre.loop.nest [d0 = 4] ins(%x[d0] : tensor<4xi8>) -> [d0] : tensor<4xi8> {
  ^bb0(%a: i8):
    spyre.loop.yield %a : i8
  }
  func.return %0 : tensor<4xi8>
}

// CHECK: error: [SPY-U001] the device has no form for elements of type i8
// CHECK: try: convert the model to float32 or float16
