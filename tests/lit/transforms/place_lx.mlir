// RUN: spyre-opt -p place-lx,assign-pool %s | filecheck %s
// RUN: spyre-opt -p place-lx,assign-pool,convert-spyre-kernel-to-superdsc %s | filecheck %s --check-prefix FILE

// softmax of rows, 16 of 512 on each of 32 cores. The input is read by max and sub, so it is copied to LX once:
// 16 rows of 2048 bytes are 32768. sub and exp go in its place. A maximum per row takes a stick: 16 * 128 = 2048.

!t = !spyre.tensor<[512, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>
!s = !spyre.tensor<[512] x SEN169_FP16, order [0, unit], stick unit, hbm>

func.func @main(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %0 = spyre.kernel.to_device %x : tensor<512x1024xf32> to !t
  %1 = spyre.kernel.alloc : !s
  spyre.kernel.compute "max" [m = 512 over 32, r = 1024] ins(%0[m, r] : !t) outs(%1[m] : !s)
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "sub" [m = 512 over 32, n = 1024] ins(%0[m, n] : !t, %1[m] : !s) outs(%2[m, n] : !t)
  %3 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 512 over 32, n = 1024] ins(%2[m, n] : !t) outs(%3[m, n] : !t)
  %4 = spyre.kernel.alloc : !s
  spyre.kernel.compute "sum" [m = 512 over 32, r = 1024] ins(%3[m, r] : !t) outs(%4[m] : !s)
  %5 = spyre.kernel.alloc : !t
  spyre.kernel.compute "realdiv" [m = 512 over 32, n = 1024] ins(%3[m, n] : !t, %4[m] : !s) outs(%5[m, n] : !t)
  %6 = spyre.kernel.from_device %5 : !t to tensor<512x1024xf32>
  func.return %6 : tensor<512x1024xf32>
}

// CHECK:      %[[IN:.*]] = spyre.kernel.to_device
// CHECK-NEXT: %[[MAX:.*]] = spyre.kernel.alloc at 32768 : i64 : {{.*}}, lx>
// CHECK-NEXT: %[[X:.*]] = spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// CHECK-NEXT: "identity" [d0 = 512 over 32, d1 = 1024] ins(%[[IN]][d0, d1]{{.*}} outs(%[[X]][d0, d1]
// CHECK-NEXT: "max" {{.*}} ins(%[[X]][m, r]{{.*}} outs(%[[MAX]][m]
// CHECK-NEXT: %[[SUB:.*]] = spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// CHECK-NEXT: "sub" {{.*}} ins(%[[X]][m, n]{{.*}}, %[[MAX]][m]{{.*}} outs(%[[SUB]][m, n]
// CHECK-NEXT: spyre.kernel.free %[[X]]
// CHECK-NEXT: spyre.kernel.free %[[MAX]]
// CHECK-NEXT: %[[EXP:.*]] = spyre.kernel.alloc at 0 : i64 : {{.*}}, lx>
// CHECK-NEXT: "exp"
// CHECK-NEXT: spyre.kernel.free %[[SUB]]
// CHECK-NEXT: %[[SUM:.*]] = spyre.kernel.alloc at 32768 : i64 : {{.*}}, lx>
// CHECK-NEXT: "sum"
// CHECK-NEXT: %[[OUT:.*]] = spyre.kernel.alloc : {{.*}}, hbm>
// CHECK-NEXT: "realdiv" {{.*}} ins(%[[EXP]][m, n]{{.*}}, %[[SUM]][m]{{.*}} outs(%[[OUT]][m, n]
// CHECK:      spyre.kernel.from_device %[[OUT]]

// The bundle has two arguments and no pool; every address in LX is a number.
// FILE-NOT: sdscbundle.device_mem_allocate
// FILE:     func.func @sdsc_bundle(%{{[^,]*}}, %{{[^,)]*}})
// FILE:     sdsc_5.json
// FILE-NOT: sdsc_6.json

