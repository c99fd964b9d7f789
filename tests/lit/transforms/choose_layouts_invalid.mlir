// RUN: not spyre-opt -p choose-layouts %s 2>&1 | filecheck %s
// RUN: not spyre-opt -p convert-spyre-loop-to-spyre-kernel %s 2>&1 | filecheck %s

// A product has the columns of its second operand in the lanes of its result.

func.func @main(%x: tensor<64x128xf16>, %w: tensor<128x192xf16>) -> tensor<64x192xf16> {
  %0 = spyre.loop.nest [m = 64, n = 192, k = 128] ins(%x[m, k] : tensor<64x128xf16>, %w[k, n] : tensor<128x192xf16>) -> [m, n] : tensor<64x192xf16> reduce "arith.addf" attributes {spyre.layout = #spyre.layout<lanes m, stick 0>} {
  ^bb0(%a: f16, %b: f16):
    %p = arith.mulf %a, %b : f16
    spyre.loop.yield %p : f16
  }
  func.return %0 : tensor<64x192xf16>
}

// CHECK: error: [SPY-I002] the layout of the result cannot be lanes m, stick 0: a product has its columns in the lanes
// CHECK: at: spyre.loop.nest at {{.*}}choose_layouts_invalid.mlir{{.*}}:7
// CHECK: try: legal are lanes n, stick 1
