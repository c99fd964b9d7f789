// RUN: spyre-opt %s -p divide-work,assign-pool,convert-spyre-kernel-to-superdsc -o %t.mlir
// RUN: spyre-run %t.mlir --time | filecheck %s
// RUN: spyre-run %t.mlir --time=peak | filecheck %s --check-prefix=PEAK
// RUN: not spyre-run %s --time 2>&1 | filecheck %s --check-prefix=BAD
// RUN: not spyre-run %t.mlir --time=best 2>&1 | filecheck %s --check-prefix=WHICH

!t = !spyre.tensor<[512, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %0 = spyre.kernel.to_device %x : tensor<512x1024xf32> to !t
  %1 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 512, n = 1024] ins(%0[m, n] : !t) outs(%1[m, n] : !t)
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "add" [m = 512, n = 1024] ins(%1[m, n] : !t, %0[m, n] : !t) outs(%2[m, n] : !t)
  %3 = spyre.kernel.from_device %2 : !t to tensor<512x1024xf32>
  func.return %3 : tensor<512x1024xf32>
}

// 1,048,576 bytes a tensor: 2 of them at 150 GB/s and 0.00574 ns for each byte of one, then 3.
// CHECK: result0: 512x1024, min
// CHECK: predicted time, calibrated profile
// CHECK: file op shape us bound HBM MB ratio per core cores fill sure source
// CHECK: sdsc_0 exp 512x1024 20.0 memory 2.10 1.00 1.00 32 C
// CHECK: sdsc_1 add 512x1024 27.0 memory 3.15 1.00 1.00 32 C
// CHECK: time: 47.0 us for 2 kernels, 3.4 times the 14.0 us of the roofline; without transfers between host and device
// CHECK: bottleneck: memory 100%
// CHECK: device memory: 5.24 MB moved, 2.10 MB compulsory: 2.50 times; 5.24 MB if cores loaded their own copies
// CHECK: cores in use: 100%
// CHECK: least certain: certain

// PEAK: predicted time, peak profile
// PEAK: time: 25.6 us for 2 kernels, 2.5 times the 10.2 us of the roofline

// BAD: time is predicted for bundles, and this file holds no SuperDSC
// WHICH: invalid choice
