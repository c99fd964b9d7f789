// RUN: spyre-opt -p decompose-aten,cse,dce %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,cse,convert-aten-to-spyre-loop,schedule-host-steps,cse,dce %s | filecheck %s --check-prefix=LOOP
// RUN: spyre-opt -p decompose-aten,cse,convert-aten-to-spyre-loop,schedule-host-steps,convert-spyre-loop-to-spyre-kernel %s | filecheck %s --check-prefix=KERNEL

// Equal draws stay two, a draw that nobody reads stays, and the draw behind one that waits for the device waits too.

// CHECK: %a = aten.call "random::uniform"() {size = array<i64: 4, 4>, stride = array<i64: 1, 4>, dtype = f32} host because "random numbers are drawn by the host"
// CHECK-NEXT: aten.call "random::uniform"() {{.*}} host because
// CHECK-NEXT: aten.exp
// CHECK: aten.call "aten.multinomial"({{.*}}) {{.*}} host because
// CHECK-NEXT: aten.call "aten.rand"() {{.*}} host because

// LOOP: spyre.loop.host "random::uniform" because "random numbers are drawn by the host" () {{.*}}stride = array<i64: 1, 4>
// LOOP-NEXT: spyre.loop.host "random::uniform"
// LOOP-NEXT: spyre.loop.nest
// LOOP: spyre.loop.host "aten.multinomial"
// LOOP-NEXT: spyre.loop.host "aten.rand"
// LOOP-NOT: spyre.loop.host

// KERNEL: spyre.kernel.host "random::uniform"
// KERNEL-NEXT: spyre.kernel.host "random::uniform"
// KERNEL: spyre.kernel.from_device
// KERNEL-NEXT: spyre.kernel.host "aten.multinomial"
// KERNEL-NEXT: spyre.kernel.host "aten.rand"
func.func @main(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x1xi64>, tensor<2xf32>) {
  %a = aten.call "random::uniform"() {size = array<i64: 4, 4>, stride = array<i64: 1, 4>, dtype = f32} : () -> tensor<4x4xf32>
  %unread = aten.call "random::uniform"() {size = array<i64: 4, 4>, stride = array<i64: 1, 4>, dtype = f32} : () -> tensor<4x4xf32>
  %e = aten.exp(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = aten.call "aten.multinomial"(%e) {self = #aten.operands<1>, num_samples = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x1xi64>
  %c = aten.call "aten.rand"() {size = array<i64: 2>} : () -> tensor<2xf32>
  func.return %a, %b, %c : tensor<4x4xf32>, tensor<4x1xi64>, tensor<2xf32>
}
