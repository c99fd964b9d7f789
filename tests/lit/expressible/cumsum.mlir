// RUN: spyre-opt -p decompose-aten %s | filecheck %s

// A short dimension is compared with itself: where j <= i the element, else 0, and a sum; 4 SDSCs for 65 elements.
// A long one doubles: slices shifted by 1, 2, 4, ... are added, log2(n) times 4 SDSCs at most; 42 for 1030 elements.

func.func @short(%x: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %0 = aten.cumsum(%x) {dim = 1 : i64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %0 : tensor<3x65xf32>
}

func.func @long(%x: tensor<2x1030xf32>) -> tensor<2x1030xf32> {
  %0 = aten.cumsum(%x) {dim = 1 : i64} : (tensor<2x1030xf32>) -> tensor<2x1030xf32>
  func.return %0 : tensor<2x1030xf32>
}

// CHECK-LABEL: func.func @short
// CHECK:       %[[COLUMNS:.*]] = aten.unsqueeze(%{{.*}}) {dim = 1 : i64}
// CHECK:       %[[BEFORE:.*]] = aten.le.Tensor(
// CHECK:       %[[TERMS:.*]] = aten.where.self(%[[BEFORE]], %[[COLUMNS]]
// CHECK-NEXT:  aten.sum.dim_IntList(%[[TERMS]]) {dim = array<i64: 2>}

// CHECK-LABEL: func.func @long
// CHECK:       aten.slice.Tensor(%{{.*}}) {dim = 1 : i64, start = 0 : i64, end = 1029 : i64}
// CHECK-COUNT-11: aten.cat(
// CHECK-NOT:   aten.cat(
