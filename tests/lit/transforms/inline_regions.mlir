// RUN: spyre-opt -p inline-regions %s | filecheck %s

// Two results, one of them unused at a call; the public function stays.

func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %a, %b = func.call @layers(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) loc("layers.0"(unknown))
  %c, %d = func.call @layers(%b, %a) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) loc("layers.1"(unknown))
  %e = func.call @head(%d) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %e : tensor<4xf32>
}

func.func private @layers(%p: tensor<4xf32>, %q: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = spyre.loop.nest [i = 4] ins(%p[i] : tensor<4xf32>, %q[i] : tensor<4xf32>) -> [i] : tensor<4xf32> {
  ^bb0(%1: f32, %2: f32):
    %3 = arith.addf %1, %2 : f32
    spyre.loop.yield %3 : f32
  }
  func.return %p, %0 : tensor<4xf32>, tensor<4xf32>
}

func.func @head(%p: tensor<4xf32>) -> tensor<4xf32> {
  func.return %p : tensor<4xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[FIRST:.*]] = spyre.loop.nest {{.*}} ins(%[[X]][i] : tensor<4xf32>, %[[W]][i] : tensor<4xf32>)
// CHECK:      %[[SECOND:.*]] = spyre.loop.nest {{.*}} ins(%[[FIRST]][i] : tensor<4xf32>, %[[X]][i] : tensor<4xf32>)
// CHECK:      func.return %[[SECOND]]
// CHECK-NOT:  func.call
// CHECK-NOT:  private
// CHECK:      func.func @head
