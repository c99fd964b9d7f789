// RUN: spyre-opt -p convert-spyre-loop-to-spyre-kernel %s | filecheck %s

// Integers of unknown size compute in float32, and their kernels are marked; the truth values of a comparison are
// converted once, for the selection of DL16 numbers. The host sends the integers in the order of widened sticks.

func.func @squares(%a: tensor<5x80xi64>, %x: tensor<5x80xf16>, %y: tensor<5x80xf16>) -> tensor<5x80xf16> {
  %0 = spyre.loop.nest [d0 = 5, d1 = 80] ins(%a[d0, d1] : tensor<5x80xi64>, %a[d0, d1] : tensor<5x80xi64>) -> [d0, d1] : tensor<5x80xi64> {
  ^bb0(%p: i64, %q: i64):
    %r = arith.muli %p, %q : i64
    spyre.loop.yield %r : i64
  }
  %c = spyre.loop.constant 5.000000e+03 : f64 : tensor<i64>
  %1 = spyre.loop.nest [d0 = 5, d1 = 80] ins(%0[d0, d1] : tensor<5x80xi64>, %c[] : tensor<i64>) -> [d0, d1] : tensor<5x80xi1> {
  ^bb0(%p: i64, %q: i64):
    %r = arith.cmpi sgt, %p, %q : i64
    spyre.loop.yield %r : i1
  }
  %2 = spyre.loop.nest [d0 = 5, d1 = 80] ins(%1[d0, d1] : tensor<5x80xi1>, %x[d0, d1] : tensor<5x80xf16>, %y[d0, d1] : tensor<5x80xf16>) -> [d0, d1] : tensor<5x80xf16> {
  ^bb0(%p: i1, %q: f16, %s: f16):
    %r = spyre.loop.apply "where"(%p, %q, %s) : (i1, f16, f16) -> f16
    spyre.loop.yield %r : f16
  }
  func.return %2 : tensor<5x80xf16>
}

// CHECK-LABEL: @squares
// CHECK: to_device %a zero_padding : tensor<5x80xi64> to !spyre.tensor<[5, 80] x IEEE_FP32, order [1, 0], stick 1, extents [5, 128], hbm, dl16_to_fp32>
// CHECK: compute "mul" {{.*}} element i{{[0-9]+}} integers
// CHECK: compute "greaterthan"
// CHECK-NOT: element i{{[0-9]+}} integers
// CHECK: spyre.kernel.convert {{.*}} outs({{.*}} x SEN169_FP16, order [1, 0], stick 1, hbm>)
// CHECK: compute "where3"

// Numbers up to 1,024 are DL16 numbers, and so are their sums: nothing is marked or converted.

func.func @small(%a: tensor<70xi8>, %b: tensor<70xi8>) -> tensor<70xi16> {
  %0 = spyre.loop.nest [d0 = 70] ins(%a[d0] : tensor<70xi8>) -> [d0] : tensor<70xi16> {
  ^bb0(%p: i8):
    spyre.loop.yield %p : i8
  }
  %1 = spyre.loop.nest [d0 = 70] ins(%b[d0] : tensor<70xi8>) -> [d0] : tensor<70xi16> {
  ^bb0(%p: i8):
    spyre.loop.yield %p : i8
  }
  %2 = spyre.loop.nest [d0 = 70] ins(%0[d0] : tensor<70xi16>, %1[d0] : tensor<70xi16>) -> [d0] : tensor<70xi16> {
  ^bb0(%p: i16, %q: i16):
    %r = arith.addi %p, %q : i16
    spyre.loop.yield %r : i16
  }
  func.return %2 : tensor<70xi16>
}

// CHECK-LABEL: @small
// CHECK-NOT: IEEE_FP32
// CHECK: compute "add" [d0 = 70] ins({{.*}} x SEN169_FP16, {{.*}}) outs({{.*}} x SEN169_FP16, order [0], stick 0, hbm>){{$}}
// CHECK-NOT: IEEE_FP32

// Integers that may be beyond those of float32 are rounded to it: by the host, or by the kernel that converts them.

func.func @rounded(%a: tensor<5x64xi64>, %x: tensor<5x64xf32>) -> (tensor<5x64xf32>, tensor<5x64xf32>) {
  %0 = spyre.loop.nest [d0 = 5, d1 = 64] ins(%a[d0, d1] : tensor<5x64xi64>) -> [d0, d1] : tensor<5x64xf32> {
  ^bb0(%p: i64):
    spyre.loop.yield %p : i64
  }
  %1 = spyre.loop.nest [d0 = 5, d1 = 64] ins(%a[d0, d1] : tensor<5x64xi64>, %a[d0, d1] : tensor<5x64xi64>) -> [d0, d1] : tensor<5x64xi64> {
  ^bb0(%p: i64, %q: i64):
    %r = arith.addi %p, %q : i64
    spyre.loop.yield %r : i64
  }
  %2 = spyre.loop.nest [d0 = 5, d1 = 64] ins(%1[d0, d1] : tensor<5x64xi64>) -> [d0, d1] : tensor<5x64xf32> {
  ^bb0(%p: i64):
    spyre.loop.yield %p : i64
  }
  %3 = spyre.loop.nest [d0 = 5, d1 = 64] ins(%0[d0, d1] : tensor<5x64xf32>, %x[d0, d1] : tensor<5x64xf32>) -> [d0, d1] : tensor<5x64xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    spyre.loop.yield %r : f32
  }
  func.return %2, %3 : tensor<5x64xf32>, tensor<5x64xf32>
}

// CHECK-LABEL: @rounded
// CHECK: to_device %a zero_padding : tensor<5x64xi64>
// CHECK: compute "add" {{.*}} element i64 integers
// CHECK: to_device %a zero_padding elements [f32] : tensor<5x64xi64>
// CHECK: compute "identity" {{.*}} x IEEE_FP32, {{.*}} element f32

// A table compared with an input of any size: the host limits it to just beyond the table.

func.func @positions(%at: tensor<7xi64>) -> tensor<7x100xi1> {
  %0 = spyre.loop.constant #spyre.iota<0.0, 1.0> : tensor<100xi64>
  %1 = spyre.loop.nest [d0 = 7, d1 = 100] ins(%0[d1] : tensor<100xi64>, %at[d0] : tensor<7xi64>) -> [d0, d1] : tensor<7x100xi1> {
  ^bb0(%p: i64, %q: i64):
    %r = arith.cmpi sle, %p, %q : i64
    spyre.loop.yield %r : i1
  }
  func.return %1 : tensor<7x100xi1>
}

// CHECK-LABEL: @positions
// CHECK: to_device %at saturate : tensor<7xi64> to !spyre.tensor<[7] x SEN169_FP16
// CHECK: compute "lesserequal"
// CHECK-NOT: IEEE_FP32
