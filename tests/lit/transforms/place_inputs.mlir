// RUN: spyre-opt -p place-inputs %s | filecheck %s
// RUN: spyre-opt -p 'place-inputs{inputs=free}' %s | filecheck %s --check-prefix FREE
// RUN: spyre-opt -p place-inputs,decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s --check-prefix KERNELS

// %x is an input: the sum over rows that are transposed finds it with the last dimension in the lanes, and the result
// leaves like that. The weight, the integers and the cache that is written are free.
func.func @main(%x: tensor<128x64xf16> {aten.name = "x", aten.kind = "input"},
                %w: tensor<128x64xf16> {aten.name = "w", aten.kind = "parameter"},
                %i: tensor<4xi64> {aten.name = "i", aten.kind = "input"},
                %c: tensor<64x64xf16> {aten.name = "c", aten.kind = "input"})
    -> (tensor<64x128xf16>, tensor<64x64xf16> {aten.mutates = "c"}) {
  %0 = aten.t(%x) : (tensor<128x64xf16>) -> tensor<64x128xf16>
  %1 = aten.t(%w) : (tensor<128x64xf16>) -> tensor<64x128xf16>
  %2 = aten.add.Tensor(%0, %1) : (tensor<64x128xf16>, tensor<64x128xf16>) -> tensor<64x128xf16>
  %3 = aten.neg(%c) : (tensor<64x64xf16>) -> tensor<64x64xf16>
  func.return %2, %3 : tensor<64x128xf16>, tensor<64x64xf16>
}

// CHECK:      %x: tensor<128x64xf16> {aten.name = "x", aten.kind = "input", aten.layout = "default"}
// CHECK-SAME: %w: tensor<128x64xf16> {aten.name = "w", aten.kind = "parameter"}
// CHECK-SAME: %i: tensor<4xi64> {aten.name = "i", aten.kind = "input"}
// CHECK-SAME: %c: tensor<64x64xf16> {aten.name = "c", aten.kind = "input"}
// CHECK-SAME: -> (tensor<64x128xf16> {aten.layout = "default"}, tensor<64x64xf16> {aten.mutates = "c"})

// FREE-NOT: aten.layout

// KERNELS: %[[X:.*]] = spyre.kernel.to_device %x : tensor<128x64xf16> to !spyre.tensor<[128, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>
// KERNELS: spyre.kernel.restickify
