// RUN: spyre-opt -p 'specialize-shapes{s0=5}' %s | filecheck %s
// RUN: not spyre-opt -p decompose-aten %s 2>&1 | filecheck %s --check-prefix=STILL

// The body of a loop over slices declares the symbols of its caller, and gets the same numbers.

func.func @main(%h: tensor<?xf32, #aten.extents<"s0">>, %x: tensor<9x?xf32, #aten.extents<"s0">>) -> tensor<?xf32, #aten.extents<"s0">> attributes {aten.symbols = {s0 = array<i64: 2>}} {
  %0 = control.for_loop @step trips 9 carrying 1 slicing 1 (%h, %x) : (tensor<?xf32, #aten.extents<"s0">>, tensor<9x?xf32, #aten.extents<"s0">>) -> tensor<?xf32, #aten.extents<"s0">>
  func.return %0 : tensor<?xf32, #aten.extents<"s0">>
}
func.func private @step(%c: tensor<?xf32, #aten.extents<"s0">>, %entry: tensor<1x?xf32, #aten.extents<"s0">>) -> tensor<?xf32, #aten.extents<"s0">> attributes {aten.symbols = {s0 = array<i64: 2>}} {
  %row = aten.squeeze.dims(%entry) {dim = array<i64: 0>} : (tensor<1x?xf32, #aten.extents<"s0">>) -> tensor<?xf32, #aten.extents<"s0">>
  %0 = aten.add.Tensor(%c, %row) : (tensor<?xf32, #aten.extents<"s0">>, tensor<?xf32, #aten.extents<"s0">>) -> tensor<?xf32, #aten.extents<"s0">>
  func.return %0 : tensor<?xf32, #aten.extents<"s0">>
}

// CHECK:      func.func @main(%h: tensor<5xf32>, %x: tensor<9x5xf32>) -> tensor<5xf32> {
// CHECK-NEXT:   control.for_loop @step trips 9 carrying 1 slicing 1(%h, %x) : (tensor<5xf32>, tensor<9x5xf32>) -> tensor<5xf32>
// CHECK:      func.func private @step(%c: tensor<5xf32>, %entry: tensor<1x5xf32>) -> tensor<5xf32> {
// CHECK-NEXT:   aten.squeeze.dims(%entry) {dim = array<i64: 0>} : (tensor<1x5xf32>) -> tensor<5xf32>

// STILL:      error: [SPY-I002] the program has symbols without values: s0
