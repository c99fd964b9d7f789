// RUN: spyre-opt -p convolve-rows %s | filecheck %s

// Both convolutions stand between a placed input and a placed result, with a pointwise operator between them.
func.func @main(%x: tensor<1x3x6x56xf16> {aten.kind = "input", aten.layout = "default"},
                %v: tensor<4x3x3x3xf16> {aten.kind = "parameter"}, %w: tensor<3x4x1x1xf16> {aten.kind = "parameter"})
    -> (tensor<1x3x6x56xf16> {aten.layout = "default"}) {
  %0 = aten.conv2d(%x, %v) {padding = [1, 1]} : (tensor<1x3x6x56xf16>, tensor<4x3x3x3xf16>) -> tensor<1x4x6x56xf16>
  %1 = aten.relu(%0) : (tensor<1x4x6x56xf16>) -> tensor<1x4x6x56xf16>
  %2 = aten.conv2d(%1, %w) : (tensor<1x4x6x56xf16>, tensor<3x4x1x1xf16>) -> tensor<1x3x6x56xf16>
  func.return %2 : tensor<1x3x6x56xf16>
}

// CHECK:      func.func @main
// CHECK-NEXT: %[[A:.*]] = {{.*}}convolve_rows{{.*}}(%x, %v) {{.*}}padding
// CHECK-NEXT: %[[B:.*]] = aten.relu(%[[A]])
// CHECK-NEXT: {{.*}}convolve_rows{{.*}}(%[[B]], %w)

// One that may lie as it likes has its channels in the lanes.
// CHECK:      func.func @free
// CHECK-NEXT: aten.conv2d
func.func @free(%x: tensor<1x3x6x56xf16> {aten.kind = "input"}, %v: tensor<4x3x3x3xf16> {aten.kind = "parameter"})
    -> tensor<1x4x6x56xf16> {
  %0 = aten.conv2d(%x, %v) {padding = [1, 1]} : (tensor<1x3x6x56xf16>, tensor<4x3x3x3xf16>) -> tensor<1x4x6x56xf16>
  func.return %0 : tensor<1x4x6x56xf16>
}

// Patches: a stride of 14 over windows of 14. With zeros around the image they are no views of its rows.
// CHECK:      func.func @patches
// CHECK-NEXT: {{.*}}convolve_rows{{.*}}(%x, %v) {{.*}}stride = array<i64: 14, 14>
// CHECK-NEXT: aten.conv2d
func.func @patches(%x: tensor<1x3x112x392xf16> {aten.kind = "input", aten.layout = "default"},
                   %v: tensor<64x3x14x14xf16> {aten.kind = "parameter"})
    -> (tensor<1x64x8x28xf16> {aten.layout = "default"}, tensor<1x64x8x28xf16> {aten.layout = "default"}) {
  %0 = aten.conv2d(%x, %v) {stride = [14, 14]} : (tensor<1x3x112x392xf16>, tensor<64x3x14x14xf16>) -> tensor<1x64x8x28xf16>
  %1 = aten.conv2d(%x, %v) {stride = [14, 14], padding = [1, 1]}
    : (tensor<1x3x112x392xf16>, tensor<64x3x14x14xf16>) -> tensor<1x64x8x28xf16>
  func.return %0, %1 : tensor<1x64x8x28xf16>, tensor<1x64x8x28xf16>
}
