// RUN: spyre-opt -p convert-spyre-loop-to-spyre-kernel,plan,materialize-plan,divide-work %s | filecheck %s

// Weights of few bits that are larger than all scratchpads. 12,800 columns are 100 sticks: all cores share 96 of them in
// three trips, and a loop of its own has the other four, each of which eight cores make for 16 rows. 4,096 columns are a
// stick for each core, of whose 12,800 elements it has room for a quarter: the sum is in four parts.

// CHECK-LABEL: func.func @columns
// CHECK:      scf.for %{{.*}} = %[[ZERO:.*]] to %[[THREE:.*]] step
// CHECK-NEXT:   %[[TILE:.*]] = spyre.kernel.tile %[[W:.*]] dim 0 at %{{.*}} * 4096
// CHECK:        spyre.kernel.convert [d1 = 4096, d0 = 4096 over 32] ins(%[[TILE]][d0, d1]{{.*}}) outs(%[[WIDE:.*]][d0, d1]{{.*}}, lx>)
// CHECK:        spyre.kernel.compute "batchmatmul" [m = 128, n = 4096 over 32, k = 4096] ins(%{{.*}}, %[[WIDE]][n, k]
// CHECK:      %[[FIRST:.*]] = arith.constant 24 : index
// CHECK-NEXT: %[[END:.*]] = arith.constant 25 : index
// CHECK:      scf.for %{{.*}} = %[[FIRST]] to %[[END]] step
// CHECK-NEXT:   spyre.kernel.tile %[[W]] dim 0 at %{{.*}} * 512
// CHECK:        spyre.kernel.convert [copy = 8 over 8, d1 = 4096, d0 = 512 over 4]{{.*}} outs(%[[SAME:.*]][copy, d0, d1]{{.*}}, lx>)
// CHECK:        spyre.kernel.compute "batchmatmul" [copy = 8 over 8, m = 16, n = 512 over 4, k = 4096] ins(%{{.*}}[copy * 16 + m, k]{{.*}}, %[[SAME]][copy, n, k]
func.func @columns(%x: tensor<128x4096xf16>, %w: tensor<12800x4096xf8E4M3FN> {aten.kind = "parameter", aten.name = "w"}) -> tensor<128x12800xf16> {
  %0 = spyre.loop.nest [d0 = 12800, d1 = 4096] ins(%w[d0, d1] : tensor<12800x4096xf8E4M3FN>) -> [d0, d1] : tensor<12800x4096xf16> {
  ^bb0(%a: f8E4M3FN):
    spyre.loop.yield %a : f8E4M3FN
  }
  %1 = spyre.loop.nest [m = 128, n = 12800, k = 4096] ins(%x[m, k] : tensor<128x4096xf16>, %0[n, k] : tensor<12800x4096xf16>) -> [m, n] : tensor<128x12800xf16> reduce "arith.addf" {
  ^bb0(%a: f16, %b: f16):
    %p = arith.mulf %a, %b : f16
    spyre.loop.yield %p : f16
  }
  func.return %1 : tensor<128x12800xf16>
}

// CHECK-LABEL: func.func @sum
// CHECK-NOT:  scf.for
// CHECK:      spyre.kernel.convert [d1 = 3200, d0 = 4096 over 32] ins(%[[W:.*]][d0, d1] : {{.*}}) outs(%[[WIDE:.*]][d0, d1]{{.*}}, lx>)
// CHECK:      spyre.kernel.compute "batchmatmul" [m = 128, n = 4096 over 32, k = 3200] ins(%[[X:.*]][m, k] : {{.*}}, %[[WIDE]][n, k] : {{.*}}) outs(%[[ONE:.*]][m, n]
// CHECK:      spyre.kernel.convert [d1 = 3200, d0 = 4096 over 32] ins(%[[W]][d0, d1 + 3200]
// CHECK:      spyre.kernel.compute "batchmatmul" [m = 128, n = 4096 over 32, k = 3200] ins(%[[X]][m, k + 3200] : {{.*}}) outs(%[[TWO:.*]][m, n]
// CHECK:      spyre.kernel.compute "add" [m = 128, n = 4096 over 32] ins(%[[ONE]][m, n] : {{.*}}, lx>, %[[TWO]][m, n] : {{.*}}, lx>)
// CHECK:      spyre.kernel.convert {{.*}} ins(%[[W]][d0, d1 + 6400]
// CHECK:      spyre.kernel.convert {{.*}} ins(%[[W]][d0, d1 + 9600]
func.func @sum(%x: tensor<128x12800xf16>, %w: tensor<4096x12800xf8E4M3FN> {aten.kind = "parameter", aten.name = "w"}) -> tensor<128x4096xf16> {
  %0 = spyre.loop.nest [d0 = 4096, d1 = 12800] ins(%w[d0, d1] : tensor<4096x12800xf8E4M3FN>) -> [d0, d1] : tensor<4096x12800xf16> {
  ^bb0(%a: f8E4M3FN):
    spyre.loop.yield %a : f8E4M3FN
  }
  %1 = spyre.loop.nest [m = 128, n = 4096, k = 12800] ins(%x[m, k] : tensor<128x12800xf16>, %0[n, k] : tensor<4096x12800xf16>) -> [m, n] : tensor<128x4096xf16> reduce "arith.addf" {
  ^bb0(%a: f16, %b: f16):
    %p = arith.mulf %a, %b : f16
    spyre.loop.yield %p : f16
  }
  func.return %1 : tensor<128x4096xf16>
}
