// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// All elements of a row compared with each other: how many go before each is its place, at which it is selected. NaN is
// taken for an infinity first, and told from one by its position. Cost: 16 SDSCs for the values, 21 with the places.

func.func @main(%x: tensor<3x65xf32>) -> (tensor<3x65xf32>, tensor<3x65xi64>) {
  %0, %1 = aten.sort(%x) {dim = 1 : i64, descending = true} : (tensor<3x65xf32>) -> (tensor<3x65xf32>, tensor<3x65xi64>)
  func.return %0, %1 : tensor<3x65xf32>, tensor<3x65xi64>
}

func.func @values(%x: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %0, %1 = aten.sort(%x) {dim = 1 : i64, descending = true} : (tensor<3x65xf32>) -> (tensor<3x65xf32>, tensor<3x65xi64>)
  func.return %0 : tensor<3x65xf32>
}

// CHECK-LABEL: func.func @main
// CHECK: spyre.kernel.compute "notequal" [d0 = 3, d1 = 65]
// CHECK: spyre.kernel.compute "where3" [d0 = 3, d1 = 65]
// CHECK: spyre.kernel.compute "lesserthan" [d0 = 3, d1 = 65, d2 = 65]
// CHECK: spyre.kernel.compute "greaterequal" [d0 = 3, d1 = 65, d2 = 65]
// CHECK: spyre.kernel.compute "greaterthan" [d0 = 3, d1 = 65, d2 = 65]
// CHECK: spyre.kernel.compute "where3" [d0 = 3, d1 = 65, d2 = 65]
// CHECK: spyre.kernel.compute "sum" [d0 = 3, d1 = 65, r = 65]
// CHECK: spyre.kernel.compute "equal" [d0 = 3, d1 = 65, d2 = 65]
// CHECK-COUNT-2: spyre.kernel.compute "sum"
// CHECK-COUNT-2: spyre.kernel.compute "identity"

// COST: {{^}}35{{$}}
