// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST

// Whole numbers are exact up to 2^24: one hardware function for sums and products; a quotient is divided, rounded down
// and corrected by its remainder, and a conversion from floats drops what is behind the point.
// Cost: 1 SDSC each for a sum, a product, and whether a number is not 0; 13 for a floor division, 19 for a remainder;
// 6 from floats, none to floats.

func.func @quotient(%x: tensor<4x8xi32>, %y: tensor<4x8xi32>) -> tensor<4x8xi32> {
  %0 = aten.div.Tensor_mode(%x, %y) {rounding_mode = "floor"} : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>
  func.return %0 : tensor<4x8xi32>
}

func.func @remainder(%x: tensor<4x8xi32>, %y: tensor<4x8xi32>) -> tensor<4x8xi32> {
  %0 = aten.remainder.Tensor(%x, %y) : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>
  func.return %0 : tensor<4x8xi32>
}

func.func @sum(%x: tensor<4x8xi32>, %y: tensor<4x8xi32>) -> tensor<4x8xi32> {
  %0 = aten.add.Tensor(%x, %y) : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>
  func.return %0 : tensor<4x8xi32>
}

func.func @product(%x: tensor<4x8xi32>, %y: tensor<4x8xi32>) -> tensor<4x8xi32> {
  %0 = aten.mul.Tensor(%x, %y) : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>
  func.return %0 : tensor<4x8xi32>
}

func.func @cast(%x: tensor<4x8xf32>) -> tensor<4x8xi32> {
  %0 = aten._to_copy(%x) {dtype = i32} : (tensor<4x8xf32>) -> tensor<4x8xi32>
  func.return %0 : tensor<4x8xi32>
}

func.func @back(%x: tensor<4x8xi32>) -> tensor<4x8xf32> {
  %0 = aten._to_copy(%x) {dtype = f32} : (tensor<4x8xi32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}

func.func @truth(%x: tensor<4x8xi32>) -> tensor<4x8xi1> {
  %0 = aten._to_copy(%x) {dtype = i1} : (tensor<4x8xi32>) -> tensor<4x8xi1>
  func.return %0 : tensor<4x8xi1>
}

// CHECK-LABEL: func.func @quotient
// CHECK: spyre.kernel.compute "realdiv" [d0 = 4, d1 = 8] ins({{.*}}IEEE_FP32
// CHECK: spyre.kernel.compute "floor"
// CHECK-LABEL: func.func @remainder
// CHECK: spyre.kernel.compute "realdiv"
// CHECK-LABEL: func.func @sum
// CHECK: spyre.kernel.compute "add" [d0 = 4, d1 = 8] ins({{.*}}IEEE_FP32
// CHECK-LABEL: func.func @product
// CHECK: spyre.kernel.compute "mul" [d0 = 4, d1 = 8] ins({{.*}}IEEE_FP32
// CHECK-LABEL: func.func @cast
// CHECK-COUNT-2: spyre.kernel.compute "floor"
// CHECK: spyre.kernel.compute "where3"
// CHECK-LABEL: func.func @back
// CHECK-NOT: spyre.kernel.{{compute|convert}}
// CHECK-LABEL: func.func @truth
// CHECK: spyre.kernel.compute "notequal"

// COST: {{^}}41{{$}}
