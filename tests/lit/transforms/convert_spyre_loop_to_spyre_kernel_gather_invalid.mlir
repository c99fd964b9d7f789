// RUN: not spyre-opt -p convert-spyre-loop-to-spyre-kernel %s 2>&1 | filecheck %s

// A gather reads its indices by whole sticks.

func.func @main(%table: tensor<5x64xf32>, %ids: tensor<7xi64>) -> tensor<4x64xf32> {
  %0 = spyre.loop.gather [s = 4, h = 64] rows(%ids[s + 3] : tensor<7xi64>) of axis 0 in %table[0, h] : tensor<5x64xf32> -> [s, h] : tensor<4x64xf32>
  func.return %0 : tensor<4x64xf32>
}

// CHECK: error: [SPY-U001] a gather by a part of an index tensor: index s + 3 starts inside a stick of 32
// CHECK: try: pass the part as an input of its own
