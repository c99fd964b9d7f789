// RUN: spyre-opt -p divide-work %s | filecheck %s

// The longest loop of the result first: 512 rows over all 32 cores. A prime number of rows leaves the 4 sticks of
// columns. Two sticks of columns leave 16 cores for the summed loop, whose 8 sticks divide over 8.
// Of a gather the indices alone, in whole sticks of 32: all cores share one start address of the table.

!x = !spyre.tensor<[512, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>
!p = !spyre.tensor<[67, 256] x SEN169_FP16, order [1, 0], stick 1, hbm>
!a = !spyre.tensor<[1, 512] x SEN169_FP16, order [1, 0], stick 1, hbm>
!b = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!i = !spyre.tensor<[96] x SENUINT32, order [0], stick 0, hbm>
!t = !spyre.tensor<[300, 1024] x SEN169_FP16, order [0, 1], stick 1, hbm>
!r = !spyre.tensor<[96, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>
!c = !spyre.tensor<[1, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>

func.func @main() {
  %x = spyre.kernel.alloc : !x
  %p = spyre.kernel.alloc : !p
  %a = spyre.kernel.alloc : !a
  %b = spyre.kernel.alloc : !b
  %c = spyre.kernel.alloc : !c
  spyre.kernel.compute "exp" [m = 512, n = 1024] ins(%x[m, n] : !x) outs(%x[m, n] : !x)
  spyre.kernel.compute "exp" [m = 67, n = 256] ins(%p[m, n] : !p) outs(%p[m, n] : !p)
  spyre.kernel.compute "batchmatmul" [n = 128, k = 512] ins(%a[0, k] : !a, %b[k, n] : !b) outs(%c[0, n] : !c)
  %i = spyre.kernel.alloc : !i
  %t = spyre.kernel.alloc : !t
  %r = spyre.kernel.alloc : !r
  spyre.kernel.gather axis 0 [s = 96, h = 1024] ins(%i[s] : !i, %t[0, h] : !t) outs(%r[s, h] : !r)
  spyre.kernel.compute "exp" [m = 512, n = 1024 over 2] ins(%x[m, n] : !x) outs(%x[m, n] : !x)
  func.return
}

// CHECK: "exp" [m = 512 over 32, n = 1024]
// CHECK: "exp" [m = 67, n = 256 over 4]
// CHECK: "batchmatmul" [n = 128 over 2, k = 512 over 8]
// CHECK: gather axis 0 [s = 96 over 3, h = 1024]
// Divided already: it stays.
// CHECK: "exp" [m = 512, n = 1024 over 2]
