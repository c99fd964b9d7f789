// RUN: spyre-opt %s | filecheck %s --check-prefix=OPEN
// RUN: spyre-opt -p 'specialize-shapes{s0=32}' %s | filecheck %s
// RUN: not spyre-opt -p 'specialize-shapes{s0=31}' %s 2>&1 | filecheck %s --check-prefix=GUARD
// RUN: not spyre-opt -p 'specialize-shapes{s0=1}' %s 2>&1 | filecheck %s --check-prefix=RANGE
// RUN: not spyre-opt -p 'specialize-shapes{length=32}' %s 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not spyre-opt -p decompose-aten %s 2>&1 | filecheck %s --check-prefix=STILL

// Symbols stand in types and arguments; with values for them the program has nothing but numbers.

func.func @main(%x: tensor<1x?x64xf32, #aten.extents<"s0">>) -> tensor<1x?x128xf32, #aten.extents<"s0 // 2">> attributes {aten.symbols = {s0 = array<i64: 2, 512>}} {
  aten.guard "s0 % 2 == 0"
  %0 = aten.exp(%x) : (tensor<1x?x64xf32, #aten.extents<"s0">>) -> tensor<1x?x64xf32, #aten.extents<"s0">>
  %1 = aten.view(%0) {size = [1 : i64, #aten.size<"s0 // 2">, 128 : i64]} : (tensor<1x?x64xf32, #aten.extents<"s0">>) -> tensor<1x?x128xf32, #aten.extents<"s0 // 2">>
  func.return %1 : tensor<1x?x128xf32, #aten.extents<"s0 // 2">>
}

// OPEN:      func.func @main(%x: tensor<1x?x64xf32, #aten.extents<"s0">>) -> tensor<1x?x128xf32, #aten.extents<"s0 // 2">> attributes {aten.symbols = {s0 = array<i64: 2, 512>}} {
// OPEN-NEXT:   aten.guard "s0 % 2 == 0"
// OPEN-NEXT:   %0 = aten.exp(%x) : (tensor<1x?x64xf32, #aten.extents<"s0">>) -> tensor<1x?x64xf32, #aten.extents<"s0">>
// OPEN-NEXT:   %1 = aten.view(%0) {size = [1 : i64, #aten.size<"s0 // 2">, 128 : i64]}

// CHECK:      func.func @main(%x: tensor<1x32x64xf32>) -> tensor<1x16x128xf32> {
// CHECK-NEXT:   %0 = aten.exp(%x) : (tensor<1x32x64xf32>) -> tensor<1x32x64xf32>
// CHECK-NEXT:   %1 = aten.view(%0) {size = array<i64: 1, 16, 128>} : (tensor<1x32x64xf32>) -> tensor<1x16x128xf32>
// CHECK-NEXT:   func.return %1 : tensor<1x16x128xf32>

// GUARD:      error: [SPY-I002] the program takes for granted that s0 % 2 == 0, got s0 = 31
// GUARD-NEXT: at: {{.*}}specialize_shapes.mlir:11
// RANGE:      error: [SPY-I002] symbol s0 is 1, expected 2 to 512
// UNKNOWN:    error: [SPY-I002] the program has no symbol length
// UNKNOWN:    try: its symbols are s0 (2 to 512)
// STILL:      error: [SPY-I002] the program has symbols without values: s0
// STILL-NEXT: try: specialize-shapes{s0=…} first
