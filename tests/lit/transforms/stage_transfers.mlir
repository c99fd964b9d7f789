// RUN: spyre-opt -p stage-transfers %s | filecheck %s
// RUN: spyre-opt -p 'stage-transfers{least-us=30}' %s | filecheck %s --check-prefix FEW
!H = !spyre.tensor<[64, 512, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
!L = !spyre.tensor<[64, 512, 64] x SEN169_FP16, order [0, 1, 2], stick 2, lx>
!N = !spyre.tensor<[64, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>
!V = !spyre.tensor<[] x SEN169_FP16, order [unit], stick unit, hbm>

// 4 MB are read and 4 MB written: the reads go first.
func.func @one(%x: tensor<64x512x64xf16>, %y: tensor<64x64xf16>) -> tensor<64x512x64xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x512x64xf16> to !H
  %1 = spyre.kernel.to_device %y : tensor<64x64xf16> to !N
  %r = spyre.kernel.alloc : !H
  spyre.kernel.compute "add" [b = 64 over 32, t = 512, c = 64] ins(%0[b, t, c] : !H, %1[b, c] : !N) outs(%r[b, t, c] : !H)
  %2 = spyre.kernel.from_device %r : !H to tensor<64x512x64xf16>
  func.return %2 : tensor<64x512x64xf16>
}

// CHECK-LABEL: func.func @one
// CHECK: %[[S:.*]] = spyre.kernel.alloc at 0 : i64 : !spyre.tensor<[64, 512, 64] x SEN169_FP16, order [0, 1, 2], stick 2, lx>
// CHECK-NEXT: "identity" [b = 64 over 32, t = 512, c = 64] ins({{.*}}[b, t, c] {{.*}}) outs(%[[S]][b, t, c] :
// CHECK-NEXT: "add" {{.*}} ins(%[[S]][b, t, c] :
// FEW-LABEL: func.func @one
// FEW-NOT: identity

// Two tensors are read: the result goes to the scratchpads, and from there to device memory.
func.func @two(%x: tensor<64x512x64xf16>, %y: tensor<64x512x64xf16>) -> tensor<64x512x64xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x512x64xf16> to !H
  %1 = spyre.kernel.to_device %y : tensor<64x512x64xf16> to !H
  %r = spyre.kernel.alloc : !H
  spyre.kernel.compute "add" [b = 64 over 32, t = 512, c = 64] ins(%0[b, t, c] : !H, %1[b, t, c] : !H) outs(%r[b, t, c] : !H)
  %2 = spyre.kernel.from_device %r : !H to tensor<64x512x64xf16>
  func.return %2 : tensor<64x512x64xf16>
}

// CHECK-LABEL: func.func @two
// CHECK: %[[T:.*]] = spyre.kernel.alloc {{.*}}, lx>
// CHECK-NEXT: "add" {{.*}} outs(%[[T]][b, t, c] :
// CHECK-NEXT: "identity" {{.*}} ins(%[[T]][b, t, c] :

// What is read after the kernel stays where it is; the stage lies behind it.
func.func @beside(%x: tensor<64x512x64xf16>) -> (tensor<64x512x64xf16>, tensor<64x512x64xf16>) {
  %0 = spyre.kernel.to_device %x : tensor<64x512x64xf16> to !H
  %k = spyre.kernel.alloc at 0 : i64 : !L
  spyre.kernel.compute "exp" [b = 64 over 32, t = 512, c = 64] ins(%0[b, t, c] : !H) outs(%k[b, t, c] : !L)
  %r = spyre.kernel.alloc : !H
  spyre.kernel.compute "neg" [b = 64 over 32, t = 512, c = 64] ins(%0[b, t, c] : !H) outs(%r[b, t, c] : !H)
  %q = spyre.kernel.alloc : !H
  spyre.kernel.compute "exp" [b = 64 over 32, t = 512, c = 64] ins(%k[b, t, c] : !L) outs(%q[b, t, c] : !H)
  %2 = spyre.kernel.from_device %r : !H to tensor<64x512x64xf16>
  %3 = spyre.kernel.from_device %q : !H to tensor<64x512x64xf16>
  func.return %2, %3 : tensor<64x512x64xf16>, tensor<64x512x64xf16>
}

// CHECK-LABEL: func.func @beside
// CHECK: spyre.kernel.alloc at 131072 : i64 :
// CHECK: "neg"

// A core's part of a stage would take all 2 MB of its scratchpad.
!W = !spyre.tensor<[64, 8192, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>
func.func @full(%x: tensor<64x8192x64xf16>) -> tensor<64x8192x64xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x8192x64xf16> to !W
  %r = spyre.kernel.alloc : !W
  spyre.kernel.compute "exp" [b = 64 over 32, t = 8192, c = 64] ins(%0[b, t, c] : !W) outs(%r[b, t, c] : !W)
  %2 = spyre.kernel.from_device %r : !W to tensor<64x8192x64xf16>
  func.return %2 : tensor<64x8192x64xf16>
}

// CHECK-LABEL: func.func @full
// CHECK-NOT: identity
