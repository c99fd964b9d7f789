// RUN: spyre-opt -p canonicalize %s | filecheck %s

// CHECK-LABEL: func.func @identity(
// CHECK-NEXT:    func.return %x
func.func @identity(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = spyre.loop.nest [m = 4, n = 6] ins(%x[m, n] : tensor<4x6xf32>) -> [m, n] : tensor<4x6xf32> {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  func.return %0 : tensor<4x6xf32>
}

// A copy to other places, and one that rounds an unrounded sum, stay.
// CHECK-LABEL: func.func @no_identity(
// CHECK-NEXT:    spyre.loop.nest [m = 4, n = 4] ins(%x[n, m]
// CHECK:         spyre.loop.nest [m = 4, n = 4] ins(%x[m, n] : tensor<4x4xf32>, %x[m, n]
// CHECK:         spyre.loop.nest [m = 4, n = 4] ins(%{{.*}}[m, n]
// CHECK:         func.return
func.func @no_identity(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = spyre.loop.nest [m = 4, n = 4] ins(%x[n, m] : tensor<4x4xf32>) -> [m, n] : tensor<4x4xf32> {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  %1 = spyre.loop.nest [m = 4, n = 4] ins(%x[m, n] : tensor<4x4xf32>, %x[m, n] : tensor<4x4xf32>) -> [m, n] : tensor<4x4xf32> attributes {spyre.wide} {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    spyre.loop.yield %s : f32
  }
  %2 = spyre.loop.nest [m = 4, n = 4] ins(%1[m, n] : tensor<4x4xf32>) -> [m, n] : tensor<4x4xf32> {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  func.return %0, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @overwritten(
// CHECK-NEXT:    spyre.loop.nest [m = 4, n = 6] ins(%x[n, m] : tensor<6x4xf32>) -> [m, n] : tensor<4x6xf32> {
func.func @overwritten(%x: tensor<6x4xf32>) -> tensor<4x6xf32> {
  %e = spyre.loop.empty : tensor<4x6xf32>
  %0 = spyre.loop.nest [m = 4, n = 6] ins(%x[n, m] : tensor<6x4xf32>) into %e -> [m, n] : tensor<4x6xf32> {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  func.return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @half_overwritten(
// CHECK:         spyre.loop.nest {{.*}} into %y -> [m + 2, n]
func.func @half_overwritten(%x: tensor<2x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = spyre.loop.nest [m = 2, n = 4] ins(%x[m, n] : tensor<2x4xf32>) into %y -> [m + 2, n] : tensor<4x4xf32> {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  func.return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @known(
// CHECK-NEXT:    spyre.loop.constant 2.500000e-01 : f64 : tensor<4x6xf32>
// CHECK-NEXT:    func.return
func.func @known() -> tensor<4x6xf32> {
  %c = spyre.loop.constant 0.5 : f64 : tensor<f32>
  %d = spyre.loop.constant -0.25 : f64 : tensor<6xf32>
  %0 = spyre.loop.nest [m = 4, n = 6] ins(%c[] : tensor<f32>, %d[n] : tensor<6xf32>) -> [m, n] : tensor<4x6xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    spyre.loop.yield %s : f32
  }
  func.return %0 : tensor<4x6xf32>
}

// Float32 has no 0.1, and a quotient may differ in its last bit.
// CHECK-LABEL: func.func @not_folded(
// CHECK:         arith.addf
// CHECK:         arith.divf
func.func @not_folded() -> (tensor<6xf32>, tensor<6xf32>) {
  %c = spyre.loop.constant 0.1 : f64 : tensor<6xf32>
  %d = spyre.loop.constant 3.0 : f64 : tensor<6xf32>
  %0 = spyre.loop.nest [n = 6] ins(%c[n] : tensor<6xf32>, %d[n] : tensor<6xf32>) -> [n] : tensor<6xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    spyre.loop.yield %s : f32
  }
  %1 = spyre.loop.nest [n = 6] ins(%d[n] : tensor<6xf32>, %d[n] : tensor<6xf32>) -> [n] : tensor<6xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.divf %a, %b : f32
    spyre.loop.yield %s : f32
  }
  func.return %0, %1 : tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: func.func @unused(
// CHECK-NEXT:    func.return
func.func @unused(%x: tensor<4xf32>) {
  %0 = spyre.loop.nest [m = 4] ins(%x[m] : tensor<4xf32>) -> [m] : tensor<4xf32> {
  ^bb0(%a: f32):
    %s = math.exp %a : f32
    spyre.loop.yield %s : f32
  }
  func.return
}
