// RUN: spyre-opt -p part-columns %s | filecheck %s

// A gate is in every other column: the host takes the rows of the weight apart, and there are two products.

// CHECK:      func.func @gate
// CHECK-DAG:  %[[EVEN:.*]] = aten.slice.Tensor(%w) {start = 0 : i64, end = 256 : i64, step = 2 : i64} attributes {spyre.widened} : (tensor<256x64xf16>) -> tensor<128x64xf16>
// CHECK-DAG:  %[[GATE:.*]] = aten.linear(%x, %[[EVEN]]) : (tensor<64x64xf16>, tensor<128x64xf16>) -> tensor<64x128xf16>
// CHECK-DAG:  %[[ODD:.*]] = aten.slice.Tensor(%w) {start = 1 : i64, end = 256 : i64, step = 2 : i64} attributes {spyre.widened}
// CHECK-DAG:  %[[UP:.*]] = aten.linear(%x, %[[ODD]])
// CHECK:      aten.mul.Tensor(%[[GATE]], %[[UP]])
func.func @gate(%x: tensor<64x64xf16>, %w: tensor<256x64xf16> {aten.kind = "parameter"}) -> tensor<64x128xf16> {
  %y = aten.linear(%x, %w) : (tensor<64x64xf16>, tensor<256x64xf16>) -> tensor<64x256xf16>
  %even = aten.slice.Tensor(%y) {dim = 1, start = 0, step = 2} : (tensor<64x256xf16>) -> tensor<64x128xf16>
  %odd = aten.slice.Tensor(%y) {dim = 1, start = 1, step = 2} : (tensor<64x256xf16>) -> tensor<64x128xf16>
  %z = aten.mul.Tensor(%even, %odd) : (tensor<64x128xf16>, tensor<64x128xf16>) -> tensor<64x128xf16>
  func.return %z : tensor<64x128xf16>
}

// Queries and keys of each head: rows of the weight by head.

// CHECK:      func.func @heads
// CHECK:      %[[PARTED:.*]] = aten.view(%w) {size = array<i64: 2, 2, 64, 64>} attributes {spyre.widened} : (tensor<256x64xf16>) -> tensor<2x2x64x64xf16>
// CHECK-NEXT: %[[PART:.*]] = aten.slice.Tensor(%[[PARTED]]) {dim = 1 : i64, start = 0 : i64, end = 1 : i64} attributes {spyre.widened}
// CHECK-NEXT: %[[OWN:.*]] = aten.view(%[[PART]]) {size = array<i64: 128, 64>} attributes {spyre.widened}
// CHECK-NEXT: %[[Y:.*]] = aten.linear(%x, %[[OWN]])
// CHECK-NEXT: %[[HEADS:.*]] = aten.view(%[[Y]]) {size = array<i64: 64, 2, 1, 64>}
// CHECK-NEXT: aten.select.int(%[[HEADS]]) {dim = 2 : i64, index = 0 : i64}
func.func @heads(%x: tensor<64x64xf16>, %w: tensor<256x64xf16> {aten.kind = "parameter"}) -> tensor<64x2x64xf16> {
  %y = aten.linear(%x, %w) : (tensor<64x64xf16>, tensor<256x64xf16>) -> tensor<64x256xf16>
  %parted = aten.view(%y) {size = [64, 2, 2, 64]} : (tensor<64x256xf16>) -> tensor<64x2x2x64xf16>
  %q = aten.select.int(%parted) {dim = 2, index = 0} : (tensor<64x2x2x64xf16>) -> tensor<64x2x64xf16>
  %k = aten.select.int(%parted) {dim = 2, index = 1} : (tensor<64x2x2x64xf16>) -> tensor<64x2x64xf16>
  %z = aten.mul.Tensor(%q, %k) : (tensor<64x2x64xf16>, tensor<64x2x64xf16>) -> tensor<64x2x64xf16>
  func.return %z : tensor<64x2x64xf16>
}

// A weight that is an input is not laid out at load.

// CHECK:      func.func @input
// CHECK-NEXT: aten.linear(%x, %w)
func.func @input(%x: tensor<64x64xf16>, %w: tensor<256x64xf16>) -> tensor<64x128xf16> {
  %y = aten.linear(%x, %w) : (tensor<64x64xf16>, tensor<256x64xf16>) -> tensor<64x256xf16>
  %even = aten.slice.Tensor(%y) {dim = 1, start = 0, step = 2} : (tensor<64x256xf16>) -> tensor<64x128xf16>
  %odd = aten.slice.Tensor(%y) {dim = 1, start = 1, step = 2} : (tensor<64x256xf16>) -> tensor<64x128xf16>
  %z = aten.mul.Tensor(%even, %odd) : (tensor<64x128xf16>, tensor<64x128xf16>) -> tensor<64x128xf16>
  func.return %z : tensor<64x128xf16>
}
