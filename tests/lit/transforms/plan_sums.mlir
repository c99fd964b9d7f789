// RUN: spyre-opt -p plan,materialize-plan %s | filecheck %s
// RUN: spyre-opt -p plan,materialize-plan,divide-work,place-lx,assign-pool %s | filecheck %s --check-prefix PLACED

// The sum of eight products grows from trip to trip in the scratchpads: 1 MiB, 32 KiB a core, is written once instead of
// eight times.

!x = !spyre.tensor<[8, 512, 1024] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>
!w = !spyre.tensor<[8, 1024, 1024] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>
!y = !spyre.tensor<[512, 1024] x SEN169_FP16, order [0, 1], stick 1, hbm>

func.func @main(%x: tensor<8x512x1024xf16>, %w: tensor<8x1024x1024xf16>) -> tensor<512x1024xf16> {
  %0 = spyre.kernel.to_device %x : tensor<8x512x1024xf16> to !x
  %1 = spyre.kernel.to_device %w : tensor<8x1024x1024xf16> to !w
  %2 = spyre.kernel.alloc : !x
  spyre.kernel.compute "batchmatmul" [e = 8, m = 512, n = 1024, k = 1024] ins(%0[e, m, k] : !x, %1[e, k, n] : !w) outs(%2[e, m, n] : !x)
  %3 = spyre.kernel.alloc : !y
  spyre.kernel.compute "sum" [r = 8, b = 512, c = 1024] ins(%2[r, b, c] : !x) outs(%3[b, c] : !y) element f16
  %4 = spyre.kernel.from_device %3 : !y to tensor<512x1024xf16>
  func.return %4 : tensor<512x1024xf16>
}

// CHECK:      %[[OUT:.*]] = spyre.kernel.alloc : !spyre.tensor<[512, 1024] {{.*}}, hbm>
// CHECK-NEXT: %[[ZERO:.*]] = spyre.kernel.constant 0.000000e+00
// CHECK-NEXT: %[[TOTAL:.*]] = spyre.kernel.alloc : !spyre.tensor<[512, 1024] {{.*}}, lx>
// CHECK-NEXT: "identity" [b = 512 over [[M:[0-9]+]], c = 1024 over [[N:[0-9]+]]] ins(%[[ZERO]][]{{.*}} outs(%[[TOTAL]][b, c]
// CHECK:      scf.for
// CHECK:        "batchmatmul" {{.*}} outs(%[[PART:[0-9a-z_]+]][
// CHECK-NEXT:   "add" [b = 512 over [[M]], c = 1024 over [[N]]] ins(%[[TOTAL]][b, c]{{.*}}, %[[PART]][0, b, c]{{.*}}, lx>) outs(%[[TOTAL]][b, c]{{.*}}, lx>)
// CHECK-NEXT: }
// CHECK-NEXT: "identity" [b = 512 over [[M]], c = 1024 over [[N]]] ins(%[[TOTAL]][b, c]{{.*}} outs(%[[OUT]][b, c]{{.*}} element f16
// CHECK-NOT:  "sum"
// CHECK:      spyre.kernel.from_device %[[OUT]]

// PLACED:      "identity" {{.*}} outs(%[[TOTAL:[0-9a-z_]+]]{{.*}}, lx>)
// PLACED:      "add" {{.*}} ins(%[[TOTAL]]{{.*}}, lx>, {{.*}}, lx>) outs(%[[TOTAL]]{{.*}}, lx>)
// PLACED:      "identity" {{.*}} ins(%[[TOTAL]]{{.*}}, lx>) outs({{.*}}, hbm>)
// PLACED-NEXT: spyre.kernel.free %[[TOTAL]]
