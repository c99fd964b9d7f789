// RUN: spyre-opt -p decompose-aten %s | filecheck %s
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | grep -c -e kernel.compute -e kernel.restickify -e kernel.gather -e kernel.convert | filecheck %s --check-prefix COST
// RUN: spyre-opt -p decompose-aten,convert-aten-to-spyre-loop,convert-spyre-loop-to-spyre-kernel %s | filecheck %s --check-prefix KERNEL

// A short dimension is compared with itself: where j <= i the element, else 0, and a sum; 4 SDSCs for 65 elements.
// A long one doubles: slices shifted by 1, 2, 4, ... are added, log2(n) times 4 SDSCs at most; 42 for 1030 elements.
// Whole numbers are added as FP32, which is exact up to 2^24; 7 SDSCs for 65, as the lanes behind are cleared.

func.func @short(%x: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %0 = aten.cumsum(%x) {dim = 1 : i64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %0 : tensor<3x65xf32>
}

func.func @long(%x: tensor<2x1030xf32>) -> tensor<2x1030xf32> {
  %0 = aten.cumsum(%x) {dim = 1 : i64} : (tensor<2x1030xf32>) -> tensor<2x1030xf32>
  func.return %0 : tensor<2x1030xf32>
}

func.func @whole(%x: tensor<65x3xi32>) -> tensor<65x3xi64> {
  %0 = aten.cumsum(%x) {dim = 0 : i64, dtype = i64} : (tensor<65x3xi32>) -> tensor<65x3xi64>
  func.return %0 : tensor<65x3xi64>
}

// CHECK-LABEL: func.func @short
// CHECK:       %[[COLUMNS:.*]] = aten.unsqueeze(%{{.*}}) {dim = 1 : i64} wide
// CHECK:       %[[BEFORE:.*]] = aten.le.Tensor(
// CHECK:       %[[TERMS:.*]] = aten.where.self(%[[BEFORE]], %[[COLUMNS]]
// CHECK-NEXT:  aten.sum.dim_IntList(%[[TERMS]]) {dim = array<i64: 2>}

// CHECK-LABEL: func.func @long
// CHECK:       aten.slice.Tensor(%{{.*}}) {dim = 1 : i64, start = 0 : i64, end = 1029 : i64} wide
// CHECK-COUNT-11: aten.cat(
// CHECK-NOT:   aten.cat(

// KERNEL-LABEL: func.func @whole
// KERNEL:       spyre.kernel.compute "sum" {{.*}} ins(%{{.*}} : !spyre.tensor<[65, 65, 3] x IEEE_FP32

// COST: {{^}}50{{$}}
