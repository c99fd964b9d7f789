// RUN: spyre-opt %s --split-input-file | filecheck %s

// What a KTIR program is besides ktdp: ops of other dialects, in the custom assembly that its other readers know.

// CHECK: %minus_inf = arith.constant 0xFC00 : f16
// CHECK: linalg.reduce ins(%v:tensor<16x64xf16>) outs(%i:tensor<16xf16>) dimensions = [1]
// CHECK: linalg.broadcast ins(%m:tensor<16xf16>) outs(%e:tensor<16x64xf16>) dimensions = [1]
func.func @f(%v: tensor<16x64xf16>) -> tensor<16x64xf16> {
  %minus_inf = arith.constant 0xFC00 : f16
  %d = tensor.empty() : tensor<16xf16>
  %i = linalg.fill ins(%minus_inf : f16) outs(%d : tensor<16xf16>) -> tensor<16xf16>
  %m = linalg.reduce ins(%v : tensor<16x64xf16>) outs(%i : tensor<16xf16>) dimensions = [1]
    (%p: f16, %q: f16) {
      %pq = arith.maximumf %p, %q : f16
      linalg.yield %pq : f16
    }
  %e = tensor.empty() : tensor<16x64xf16>
  %b = linalg.broadcast ins(%m : tensor<16xf16>) outs(%e : tensor<16x64xf16>) dimensions = [1]
  func.return %b : tensor<16x64xf16>
}
