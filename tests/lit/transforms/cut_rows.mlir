// RUN: spyre-opt -p cut-rows %s | filecheck %s
// RUN: spyre-opt -p cut-rows,convert-spyre-loop-to-spyre-kernel,plan,materialize-plan,divide-work,place-lx %s | filecheck %s --check-prefix PLACED

// 67 rows are a prime number: 64 of them are two for each of 32 cores, and three are left. Two nests read %x, so the
// first part reads a copy, which stays in the scratchpads.

func.func @main(%x: tensor<67x256xf32>) -> tensor<67x256xf32> {
  %0 = spyre.loop.nest [m = 67, r = 256] ins(%x[m, r] : tensor<67x256xf32>) -> [m, 0] : tensor<67x1xf32> reduce "arith.maximumf" {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  %1 = spyre.loop.nest [m = 67, n = 256] ins(%x[m, n] : tensor<67x256xf32>, %0[m, 0] : tensor<67x1xf32>) -> [m, n] : tensor<67x256xf32> {
  ^bb0(%b: f32, %c: f32):
    %d = arith.subf %b, %c : f32
    spyre.loop.yield %d : f32
  }
  func.return %1 : tensor<67x256xf32>
}

// CHECK:      %[[WHOLE:.*]] = spyre.loop.empty : tensor<67x256xf32>
// CHECK-NEXT: %[[COPY:.*]] = spyre.loop.nest [d0 = 64, d1 = 256] ins(%x[d0, d1] : tensor<67x256xf32>) -> [d0, d1] : tensor<64x256xf32>
// CHECK:      %[[MAX:.*]] = spyre.loop.nest [m = 64, r = 256] ins(%[[COPY]][m, r] : tensor<64x256xf32>) -> [m, 0] : tensor<64x1xf32>
// CHECK:      %[[PART:.*]] = spyre.loop.nest [m = 64, n = 256] ins(%[[COPY]][m, n] {{.*}}, %[[MAX]][m, 0] {{.*}}) into %[[WHOLE]] -> [m, n] : tensor<67x256xf32>
// CHECK:      %[[REST:.*]] = spyre.loop.nest [m = 3, r = 256] ins(%x[m + 64, r] : tensor<67x256xf32>) -> [m, 0] : tensor<3x1xf32>
// CHECK:      %[[ALL:.*]] = spyre.loop.nest [m = 3, n = 256] ins(%x[m + 64, n] {{.*}}, %[[REST]][m, 0] {{.*}}) into %[[PART]] -> [m + 64, n] : tensor<67x256xf32>
// CHECK:      func.return %[[ALL]]

// PLACED: "identity" [d0 = 64 over 32, d1 = 256] {{.*}} outs({{.*}}, lx>)
// PLACED: "max" [m = 64 over 32, r = 256]
// PLACED: "sub" [m = 64 over 32, n = 256]
// PLACED: "max" [m = 3 over 3, r = 256]
// PLACED: "sub" [m = 3 over 3, n = 256 over 4]
