// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Known statistics are one product and one sum per element, their scale and shift one kernel each per channel and step.
// Cost: 7 SDSCs by known statistics, 11 by each channel's own, 18 by groups of channels, which change the lanes.

func.func @group(%x: tensor<2x64x4x4xf16>, %w: tensor<64xf16> {aten.kind = "parameter"}, %b: tensor<64xf16> {aten.kind = "parameter"}) -> tensor<2x64x4x4xf16> {
  %0 = aten.group_norm(%x, %w, %b) {num_groups = 4 : i64} : (tensor<2x64x4x4xf16>, tensor<64xf16>, tensor<64xf16>) -> tensor<2x64x4x4xf16>
  func.return %0 : tensor<2x64x4x4xf16>
}

func.func @batch(%x: tensor<2x64x4x4xf16>, %w: tensor<64xf16> {aten.kind = "parameter"}, %b: tensor<64xf16> {aten.kind = "parameter"}, %m: tensor<64xf16> {aten.kind = "buffer"}, %v: tensor<64xf16> {aten.kind = "buffer"}) -> tensor<2x64x4x4xf16> {
  %0, %1, %2 = aten._native_batch_norm_legit_no_training(%x, %w, %b, %m, %v) {momentum = 0.1, eps = 1.0e-5} : (tensor<2x64x4x4xf16>, tensor<64xf16>, tensor<64xf16>, tensor<64xf16>, tensor<64xf16>) -> (tensor<2x64x4x4xf16>, tensor<0xf16>, tensor<0xf16>)
  func.return %0 : tensor<2x64x4x4xf16>
}

func.func @instance(%x: tensor<2x64x4x4xf16>) -> tensor<2x64x4x4xf16> {
  %0 = aten.instance_norm(%x) {use_input_stats = true, momentum = 0.1, eps = 1.0e-5, cudnn_enabled = true} : (tensor<2x64x4x4xf16>) -> tensor<2x64x4x4xf16>
  func.return %0 : tensor<2x64x4x4xf16>
}

// CHECK-LABEL: func.func @group
// CHECK: spyre.kernel.compute "rsqrt"
// CHECK-LABEL: func.func @batch
// CHECK: spyre.kernel.compute "rsqrt" [d0 = 64]
// CHECK: spyre.kernel.compute "mul" [d0 = 2, d1 = 64, d2 = 4, d3 = 4]
// CHECK: spyre.kernel.compute "add" [d0 = 2, d1 = 64, d2 = 4, d3 = 4]
// CHECK-LABEL: func.func @instance
// CHECK: spyre.kernel.compute "rsqrt" [d0 = 2, d1 = 64]

// COST: {{^}}33{{$}}
