// Forms of upstream ops that MLIR reads and prints: they are read, and printed in the long form.
// RUN: spyre-opt %s | filecheck %s
// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<4x8xf16>, %out: tensor<4xf16>) -> tensor<4xf16> {
  // CHECK-NEXT: %r = linalg.reduce ins(%x:tensor<4x8xf16>) outs(%out:tensor<4xf16>) dimensions = [1]
  // CHECK-NEXT: (%[[IN:.*]]: f16, %[[OLD:.*]]: f16) {
  // CHECK-NEXT:   %[[NEW:.*]] = arith.subf %[[OLD]], %[[IN]] : f16
  // CHECK-NEXT:   linalg.yield %[[NEW]] : f16
  %r = linalg.reduce { arith.subf } ins(%x : tensor<4x8xf16>) outs(%out : tensor<4xf16>) dimensions = [1]
  func.return %r : tensor<4xf16>
}

// CHECK-LABEL: func.func @carried
func.func @carried(%n: index, %start: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for %i = %c0 to %n step %c1 iter_args(%a = %start) -> (tensor<4xf32>) {
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %start) -> tensor<4xf32> {
    %b = arith.addf %a, %a : tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @several
func.func @several(%n: i32, %start: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: scf.for %i = %c0 to %n step %c1 iter_args(%a = %start, %b = %start) -> (f32, f32) : i32 {
  %r, %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %start, %b = %start) -> (f32, f32) : i32 {
    scf.yield %b, %a : f32, f32
  }
  func.return %r : f32
}

// A loop that carries nothing needs no terminator.
// CHECK-LABEL: func.func @nothing
func.func @nothing(%n: index) {
  // CHECK-NEXT: scf.for %i = %n to %n step %n {
  // CHECK-NEXT: }
  scf.for %i = %n to %n step %n {
  }
  func.return
}
