// RUN: spyre-opt -p plan %s | filecheck %s --check-prefix NOTED
// RUN: spyre-opt -p plan,materialize-plan %s | filecheck %s
// RUN: spyre-opt -p plan,materialize-plan,divide-work,place-lx,assign-pool %s | filecheck %s --check-prefix PLACED

// softmax of 65536 rows of 2048 bytes: its intermediates are 4 MiB a core. A quarter of the rows is 512 a core, 1 MiB
// for x, x - max and exp, which take one another's place, and 64 KiB for a maximum or a sum.

!t = !spyre.tensor<[65536, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>
!s = !spyre.tensor<[65536] x SEN169_FP16, order [0, unit], stick unit, hbm>

func.func @main(%x: tensor<65536x1024xf32>) -> tensor<65536x1024xf32> {
  %0 = spyre.kernel.to_device %x : tensor<65536x1024xf32> to !t
  %1 = spyre.kernel.alloc : !s
  spyre.kernel.compute "max" [m = 65536, r = 1024] ins(%0[m, r] : !t) outs(%1[m] : !s)
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "sub" [m = 65536, n = 1024] ins(%0[m, n] : !t, %1[m] : !s) outs(%2[m, n] : !t)
  %3 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 65536, n = 1024] ins(%2[m, n] : !t) outs(%3[m, n] : !t)
  %4 = spyre.kernel.alloc : !s
  spyre.kernel.compute "sum" [m = 65536, r = 1024] ins(%3[m, r] : !t) outs(%4[m] : !s)
  %5 = spyre.kernel.alloc : !t
  spyre.kernel.compute "realdiv" [m = 65536, n = 1024] ins(%3[m, n] : !t, %4[m] : !s) outs(%5[m, n] : !t)
  %6 = spyre.kernel.from_device %5 : !t to tensor<65536x1024xf32>
  func.return %6 : tensor<65536x1024xf32>
}

// NOTED: func.func @main({{.*}} attributes {spyre.loops = [{trips = [4 : i64], us = 1.9{{[0-9]+}}e+03 : f64, alone_us = 9.7{{[0-9]+}}e+03 : f64}]} {
// NOTED-COUNT-5: spyre.kernel.compute {{.*}}65536, {{.*}} attributes {spyre.plan = {loop = 0 : i64, over = ["m"], runs = [{division = #spyre.division<m over 32, {{[nr]}}>, us =
// NOTED-NOT: scf.for

// CHECK:      %[[IN:.*]] = spyre.kernel.to_device
// CHECK-NEXT: %[[OUT:.*]] = spyre.kernel.alloc : !spyre.tensor<[65536, 1024]
// CHECK-NEXT: arith.constant 0
// CHECK-NEXT: arith.constant 4
// CHECK-NEXT: arith.constant 1
// CHECK-NEXT: scf.for %[[I:.*]] =
// CHECK-NEXT:   %[[X:.*]] = spyre.kernel.tile %[[IN]] dim 0 at %[[I]] * 16384 : {{.*}} to !spyre.tensor<[16384, 1024] x SEN169_FP16, order [1, 0], stick 1, extents [65536, 1024], hbm>
// CHECK-NEXT:   %[[MAX:.*]] = spyre.kernel.alloc : !spyre.tensor<[16384] x
// CHECK-NEXT:   "max" [m = 16384 over 32, r = 1024] ins(%[[X]][m, r]{{.*}} outs(%[[MAX]][m]
// CHECK-NEXT:   %[[SUB:.*]] = spyre.kernel.alloc : !spyre.tensor<[16384, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>
// CHECK-NEXT:   "sub" {{.*}} ins(%[[X]][m, n]{{.*}}, %[[MAX]][m]{{.*}} outs(%[[SUB]][m, n]
// CHECK:        "exp"
// CHECK:        "sum"
// CHECK-NEXT:   %[[Y:.*]] = spyre.kernel.tile %[[OUT]] dim 0 at %[[I]] * 16384
// CHECK-NEXT:   "realdiv" {{.*}} outs(%[[Y]][m, n]
// CHECK-NEXT: }
// CHECK-NEXT: spyre.kernel.from_device %[[OUT]]

// PLACED:      scf.for
// PLACED-NEXT:   %[[TILE:.*]] = spyre.kernel.tile
// PLACED:        %[[COPY:.*]] = spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// PLACED-NEXT:   "identity" [d0 = 16384 over 32, d1 = 1024] ins(%[[TILE]][d0, d1]{{.*}} outs(%[[COPY]][d0, d1]
// PLACED-NEXT:   "max" {{.*}} ins(%[[COPY]][m, r]{{.*}}, lx>)
// PLACED-NOT:    {{ins\([^()]*hbm>}}
// PLACED:        "realdiv" {{.*}} ins({{.*}}, lx>, {{.*}}, lx>) outs({{.*}}, hbm>)
