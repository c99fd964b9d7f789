// RUN: spyre-opt -p cut-copies %s | filecheck %s

// Heads of 32 channels are put side by side in rows that count positions and sequences: first the heads, then the rows.

// CHECK:      %[[HEADS:.*]] = spyre.loop.nest [t = 100, b = 4, h = 8, c = 32] ins(%x[b, h, t, c] : tensor<4x8x100x32xf16>) -> [t, b, h * 32 + c] : tensor<100x4x256xf16>
// CHECK:      spyre.loop.nest [d0 = 100, d1 = 4, d2 = 256] ins(%[[HEADS]][d0, d1, d2] : tensor<100x4x256xf16>) -> [d0 * 4 + d1, d2] : tensor<400x256xf16>
func.func @main(%x: tensor<4x8x100x32xf16>) -> tensor<400x256xf16> {
  %y = spyre.loop.nest [t = 100, b = 4, h = 8, c = 32] ins(%x[b, h, t, c] : tensor<4x8x100x32xf16>) -> [t * 4 + b, h * 32 + c] : tensor<400x256xf16> {
  ^bb0(%e: f16):
    spyre.loop.yield %e : f16
  }
  func.return %y : tensor<400x256xf16>
}
