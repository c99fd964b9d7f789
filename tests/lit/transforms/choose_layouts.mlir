// RUN: spyre-opt -p choose-layouts %s | filecheck %s
// RUN: spyre-opt -p choose-layouts %s | spyre-opt -p convert-spyre-loop-to-spyre-kernel | filecheck %s --check-prefix KERNEL

// The sum over m wants m in its lanes, the function of each element does not care.

func.func @main(%x: tensor<128x256xf16>) -> tensor<256xf16> {
  %0 = spyre.loop.nest [m = 128, n = 256] ins(%x[m, n] : tensor<128x256xf16>) -> [m, n] : tensor<128x256xf16> attributes {spyre.layout = #spyre.layout<lanes n>} {
  ^bb0(%a: f16):
    %r = spyre.loop.apply "relu"(%a) : (f16) -> f16
    spyre.loop.yield %r : f16
  }
  %1 = spyre.loop.nest [m = 128, n = 256] ins(%0[m, n] : tensor<128x256xf16>) -> [n] : tensor<256xf16> reduce "arith.addf" attributes {spyre.layout = #spyre.layout<lanes m>} {
  ^bb0(%a: f16):
    spyre.loop.yield %a : f16
  }
  func.return %1 : tensor<256xf16>
}

// What the text says is completed.
// CHECK:      spyre.loop.nest {{.*}} -> [m, n] : {{.*}} attributes {spyre.layout = #spyre.layout<lanes n, stick 1, order [1, 0]>}
// CHECK:      spyre.loop.nest {{.*}} -> [n] : {{.*}} attributes {spyre.layout = #spyre.layout<lanes m, stick unit, order [unit, 0]>}

// KERNEL:     spyre.kernel.to_device %x {{.*}} stick 1
// KERNEL:     "relufwd"
// KERNEL:     spyre.kernel.restickify
// KERNEL:     "sum"

// The same with m in the lanes of both: the host sends the input so.

func.func @edited(%x: tensor<128x256xf16>) -> tensor<256xf16> {
  %0 = spyre.loop.nest [m = 128, n = 256] ins(%x[m, n] : tensor<128x256xf16>) -> [m, n] : tensor<128x256xf16> attributes {spyre.layout = #spyre.layout<stick 0>} {
  ^bb0(%a: f16):
    %r = spyre.loop.apply "relu"(%a) : (f16) -> f16
    spyre.loop.yield %r : f16
  }
  %1 = spyre.loop.nest [m = 128, n = 256] ins(%0[m, n] : tensor<128x256xf16>) -> [n] : tensor<256xf16> reduce "arith.addf" attributes {spyre.layout = #spyre.layout<lanes m>} {
  ^bb0(%a: f16):
    spyre.loop.yield %a : f16
  }
  func.return %1 : tensor<256xf16>
}

// CHECK:      @edited
// CHECK-NEXT: spyre.loop.nest {{.*}} attributes {spyre.layout = #spyre.layout<lanes m, stick 0, order [0, 1]>}

// KERNEL:     @edited
// KERNEL:     spyre.kernel.to_device %x {{.*}} stick 0
// KERNEL:     "relufwd" {{.*}} outs({{.*}} stick 0, hbm>)
// KERNEL-NOT: restickify
// KERNEL:     "sum"
