// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt --print-op-generic | filecheck %s --check-prefix GENERIC

!rows = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!columns = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 0, hbm>
!sparse = !spyre.tensor<[64] x SEN169_FP16, order [0, unit], stick unit, hbm>
!index = !spyre.tensor<[64] x SENUINT32, order [0], stick 0, hbm>
!table = !spyre.tensor<[10, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>

// CHECK-LABEL: func.func @ops
func.func @ops(%a: tensor<64x128xf16>, %i: tensor<64xi64>, %t: tensor<10x128xf16>, %w: tensor<96x64xf16>) -> tensor<64xf16> {
  // CHECK-NEXT: %{{.*}} = spyre.kernel.to_device %a zero_padding : tensor<64x128xf16> to !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
  // GENERIC: "spyre.kernel.to_device"(%a) <{zero_padding}>
  %da = spyre.kernel.to_device %a zero_padding : tensor<64x128xf16> to !rows
  %di = spyre.kernel.to_device %i : tensor<64xi64> to !index
  // CHECK: spyre.kernel.to_device %i elements [i32] : tensor<64xi64> to
  // GENERIC: "spyre.kernel.to_device"(%i) <{elements = [i32]}>
  %dj = spyre.kernel.to_device %i elements [i32] : tensor<64xi64> to !index
  %dt = spyre.kernel.to_device %t : tensor<10x128xf16> to !table
  // CHECK: %{{.*}} = spyre.kernel.to_device %w moved [#spyre.move<[m = 64, n = 96] [n, m] -> [m, n + 32] of [64, 128]>] : tensor<96x64xf16> to
  // GENERIC: "spyre.kernel.to_device"(%w) <{moved = [#spyre.move<[m = 64, n = 96] [n, m] -> [m, n + 32] of [64, 128]>]}>
  %dw = spyre.kernel.to_device %w moved [#spyre.move<[m = 64, n = 96] [n, m] -> [m, n + 32] of [64, 128]>] : tensor<96x64xf16> to !rows
  // CHECK: spyre.kernel.constant #spyre.first_ones<33> : !spyre.tensor<[64, 128] x SEN169_FP16
  // GENERIC: "spyre.kernel.constant"() <{value = #spyre.first_ones<33>}>
  %c = spyre.kernel.constant #spyre.first_ones<33> : !rows
  // CHECK-NEXT: spyre.kernel.alloc at 4096 : i64 : !spyre.tensor
  // GENERIC: "spyre.kernel.alloc"() <{offset = 4096 : i64}>
  %o = spyre.kernel.alloc at 4096 : i64 : !rows
  // CHECK-NEXT: spyre.kernel.alloc : !spyre.tensor
  %p = spyre.kernel.alloc : !columns
  %s = spyre.kernel.alloc : !sparse
  // CHECK: spyre.kernel.compute "add" [m = 64 over 16, n = 128 over 2] ins(%{{.*}}[m, n] : !spyre.tensor<{{.*}}>, %{{.*}}[m, n] : !spyre.tensor<{{.*}}>) outs(%{{.*}}[m, n] : !spyre.tensor<{{.*}}>)
  // GENERIC: "spyre.kernel.compute"(%{{.*}}, %{{.*}}, %{{.*}}) <{space = #spyre.space<m = 64 over 16, n = 128 over 2>, maps = [#spyre.map<m, n>, #spyre.map<m, n>, #spyre.map<m, n>], function = "add"}>
  spyre.kernel.compute "add" [m = 64 over 16, n = 128 over 2] ins(%da[m, n] : !rows, %c[m, n] : !rows) outs(%o[m, n] : !rows)
  // CHECK-NEXT: spyre.kernel.compute "clip" [m = 64, n = 128] {{.*}} op_info {clipMin = -5.000000e-01 : f64, clipMax = 1.500000e+00 : f64}
  // GENERIC: function = "clip", op_info = {clipMin = -5.000000e-01 : f64, clipMax = 1.500000e+00 : f64}}>
  spyre.kernel.compute "clip" [m = 64, n = 128] ins(%da[m, n] : !rows) outs(%o[m, n] : !rows) op_info {clipMin = -0.5 : f64, clipMax = 1.5 : f64}
  // CHECK-NEXT: spyre.kernel.restickify [m = 64, n = 128] ins(
  // GENERIC: "spyre.kernel.restickify"
  spyre.kernel.restickify [m = 64, n = 128] ins(%o[m, n] : !rows) outs(%p[m, n] : !columns)
  // CHECK-NEXT: spyre.kernel.compute "sum" [m = 64, n = 128] ins(%{{.*}}[m, n] : {{.*}}) outs(%{{.*}}[m] : !spyre.tensor<[64] x SEN169_FP16, order [0, unit], stick unit, hbm>)
  spyre.kernel.compute "sum" [m = 64, n = 128] ins(%o[m, n] : !rows) outs(%s[m] : !sparse)
  // CHECK-NEXT: spyre.kernel.gather axis 0 [s = 64, h = 128] ins(%{{.*}}[s] : {{.*}}, %{{.*}}[0, h] : {{.*}}) outs(%{{.*}}[s, h] : {{.*}})
  // GENERIC: "spyre.kernel.gather"
  spyre.kernel.gather axis 0 [s = 64, h = 128] ins(%di[s] : !index, %dt[0, h] : !table) outs(%o[s, h] : !rows)
  // CHECK-NEXT: spyre.kernel.free %{{.*}} : !spyre.tensor
  // GENERIC: "spyre.kernel.free"
  spyre.kernel.free %o : !rows
  // CHECK-NEXT: spyre.kernel.from_device %{{.*}} : !spyre.tensor<{{.*}}> to tensor<64xf16>
  // GENERIC: "spyre.kernel.from_device"
  %r = spyre.kernel.from_device %s : !sparse to tensor<64xf16>
  func.return %r : tensor<64xf16>
}
