// RUN: spyre-opt %s --verify-diagnostics --split-input-file -p convert-aten-to-spyre-loop | filecheck %s
// RUN: not spyre-opt %s --split-input-file -p convert-aten-to-spyre-loop

// Errors of the parser, the verifier and the passes, and every spelling of their place.

// CHECK: math.exp
func.func @no_error(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = aten.exp(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0 : tensor<64x64xf32>
}

// -----

func.func @parser(%x: tensor<4xf32>) {
  %0 = aten.neg(%x) (tensor<4xf32>) -> tensor<4xf32> // expected-error {{Expected ':'}}
}

// -----

func.func @verifier(%x: tensor<4xf32>) {
  %0 = aten.neg(%x) {alpha = 2} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@above {{aten.neg has no argument 'alpha'}}
  // expected-error@above {{its arguments are self}}
  func.return
}

// -----

// One error of a pass that names two lines.
func.func @pass(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error-re@below {{aten.softmax.int  x{{[0-9]+}}, first at}}
  // expected-error@+1 {{try: run decompose-aten first}}
  %0 = aten.softmax.int(%x) {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-error@+1 {{aten.cosh  x1, first at}}
  %1 = aten.call "aten.cosh"(%0) {self = #aten.operands<1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}
