// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// What a device tensor type says, and what it leaves out because it follows.

// CHECK: @least_extents(!spyre.tensor<[3, 70] x SEN169_FP16, order [1, 0], stick 1, hbm>)
func.func private @least_extents(!spyre.tensor<[3, 70] x SEN169_FP16, order [1, 0], stick 1, extents [3, 128], hbm>)
// CHECK: @more_extents(!spyre.tensor<[3, 70] x SEN169_FP16, order [1, 0], stick 1, extents [4, 128], hbm>)
func.func private @more_extents(!spyre.tensor<[3, 70] x SEN169_FP16, order [1, 0], stick 1, extents [4, 128], hbm>)
// CHECK: @half_as_many_lanes(!spyre.tensor<[3, 70] x IEEE_FP32, order [1, 0], stick 1, lx>)
func.func private @half_as_many_lanes(!spyre.tensor<[3, 70] x IEEE_FP32, order [1, 0], stick 1, extents [3, 96], lx>)
// CHECK: @scalar(!spyre.tensor<[] x SEN169_FP16, order [unit], stick unit, hbm>)
func.func private @scalar(!spyre.tensor<[] x SEN169_FP16, order [unit], stick unit, hbm>)
// CHECK: @unit(!spyre.tensor<[64, 3] x SEN169_FP16, order [1, unit, 0], stick 0, unit 64, hbm>)
func.func private @unit(!spyre.tensor<[64, 3] x SEN169_FP16, order [1, unit, 0], stick 0, unit 64, hbm>)
// CHECK: @arrangement(!spyre.tensor<[64] x IEEE_FP32, order [0], stick 0, hbm, dl16_to_fp32>)
func.func private @arrangement(!spyre.tensor<[64] x IEEE_FP32, order [0], stick 0, hbm, dl16_to_fp32>)
