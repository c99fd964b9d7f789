// RUN: spyre-opt -p part-rows %s | filecheck %s

// A product writes the rows of three batches behind each other, and a function that follows is read by batches again.
// A result keeps its shape.
!f = tensor<96x64xf16>
!b = tensor<3x32x64xf16>
func.func @main(%x: !b, %w: tensor<64x64xf16>) -> (!b, !f, tensor<64xf16>) {
  %0 = spyre.loop.nest [m_0 = 3, m_1 = 32, n = 64, k = 64] ins(%x[m_0, m_1, k] : !b, %w[k, n] : tensor<64x64xf16>) -> [m_0 * 32 + m_1, n] : !f reduce "arith.addf" {
  ^bb0(%a0: f16, %b0: f16):
    %c0 = arith.mulf %a0, %b0 : f16
    spyre.loop.yield %c0 : f16
  }
  %1 = spyre.loop.nest [m = 96, n = 64] ins(%0[m, n] : !f, %w[0, n] : tensor<64x64xf16>) -> [m, n] : !f {
  ^bb0(%a1: f16, %b1: f16):
    %c1 = arith.addf %a1, %b1 : f16
    spyre.loop.yield %c1 : f16
  }
  %2 = spyre.loop.nest [m_0 = 3, m_1 = 32, n = 64, k = 64] ins(%1[m_0 * 32 + m_1, k] : !f, %w[k, n] : tensor<64x64xf16>) -> [m_0, m_1, n] : !b reduce "arith.addf" {
  ^bb0(%a2: f16, %b2: f16):
    %c2 = arith.mulf %a2, %b2 : f16
    spyre.loop.yield %c2 : f16
  }
  %3 = spyre.loop.nest [m = 96, n = 64] ins(%0[m, n] : !f) -> [m, n] : !f {
  ^bb0(%a3: f16):
    spyre.loop.yield %a3 : f16
  }
  %4 = spyre.loop.nest [n = 64] ins(%1[31, n] : !f) -> [n] : tensor<64xf16> {
  ^bb0(%a4: f16):
    spyre.loop.yield %a4 : f16
  }
  func.return %2, %3, %4 : !b, !f, tensor<64xf16>
}

// CHECK:      %[[A:.*]] = spyre.loop.nest [m_0 = 3, m_1 = 32, n = 64, k = 64] {{.*}} -> [m_0, m_1, n] : tensor<3x32x64xf16> reduce
// CHECK:      %[[B:.*]] = spyre.loop.nest [m_0 = 3, m_1 = 32, n = 64] ins(%[[A]][m_0, m_1, n] : tensor<3x32x64xf16>, %w[0, n] : tensor<64x64xf16>) -> [m_0, m_1, n] : tensor<3x32x64xf16>
// CHECK:      spyre.loop.nest [m_0 = 3, m_1 = 32, n = 64, k = 64] ins(%[[B]][m_0, m_1, k] : tensor<3x32x64xf16>, {{.*}} -> [m_0, m_1, n]
// CHECK:      spyre.loop.nest [m_0 = 3, m_1 = 32, n = 64] ins(%[[A]][m_0, m_1, n] : tensor<3x32x64xf16>) -> [m_0 * 32 + m_1, n] : tensor<96x64xf16>
// CHECK:      spyre.loop.nest [n = 64] ins(%[[B]][0, 31, n] : tensor<3x32x64xf16>) -> [n]
