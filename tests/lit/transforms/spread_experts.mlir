// RUN: spyre-opt -p spread-experts %s | filecheck %s

// Each of 5 tokens has 2 of 4 experts: 10 rows are sorted, multiplied with the matrices of their experts, and put back.
// All 5 tokens meet all 4 matrices instead.

// CHECK:      func.func @main
// CHECK-NEXT: %{{.*}}, %[[CHOSEN:.*]] = aten.topk
// CHECK-NOT:  sort
// CHECK:      %[[ALL:.*]] = aten.expand(%{{.*}}) {size = array<i64: 4, 5, 8>}
// CHECK-NEXT: %[[PRODUCT:.*]] = aten.bmm(%[[ALL]], %w)
// CHECK:      %[[ROWS:.*]] = aten.mul.Tensor(%[[PRODUCT]], %{{.*}}) : (tensor<4x5x6xf16>, tensor<4x5x1xf16>)
// CHECK-NEXT: %[[KEPT:.*]] = aten.where.ScalarOther(%{{.*}}, %[[ROWS]]) {other = 0.{{0*}}e+00 : f64}
// CHECK-NEXT: aten.sum.dim_IntList(%[[KEPT]]) {dim = array<i64: 0>} attributes {spyre.terms = 2 : i64} : (tensor<4x5x6xf16>) -> tensor<5x6xf16>
func.func @main(%x: tensor<5x8xf16>, %scores: tensor<5x4xf16>, %w: tensor<4x8x6xf16> {aten.kind = "parameter"},
                %count: tensor<10xi64> {aten.kind = "constant", aten.counts = true}) -> tensor<5x6xf16> {
  %best, %chosen = aten.topk(%scores) {k = 2} : (tensor<5x4xf16>) -> (tensor<5x2xf16>, tensor<5x2xi64>)
  %weights = aten.view(%best) {size = [10]} : (tensor<5x2xf16>) -> tensor<10xf16>
  %experts = aten.view(%chosen) {size = [10]} : (tensor<5x2xi64>) -> tensor<10xi64>
  %sorted, %order = aten.sort(%experts) : (tensor<10xi64>) -> (tensor<10xi64>, tensor<10xi64>)
  %token = aten.div.Tensor_mode(%order) {other = 2, rounding_mode = "floor"} : (tensor<10xi64>) -> tensor<10xi64>
  %rows = aten.index.Tensor(%x, %token) : (tensor<5x8xf16>, tensor<10xi64>) -> tensor<10x8xf16>
  %weight = aten.index.Tensor(%weights, %order) : (tensor<10xf16>, tensor<10xi64>) -> tensor<10xf16>
  %floats = aten._to_copy(%sorted) {dtype = f32} : (tensor<10xi64>) -> tensor<10xf32>
  %sizes = aten.histc(%floats) {bins = 4, max = 3} : (tensor<10xf32>) -> tensor<4xf32>
  %integers = aten._to_copy(%sizes) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  %ends = aten.cumsum(%integers) {dim = 0} : (tensor<4xi32>) -> tensor<4xi32>
  %products = aten.call "transformers::grouped_mm_fallback"(%rows, %w, %ends)
    : (tensor<10x8xf16>, tensor<4x8x6xf16>, tensor<4xi32>) -> tensor<10x6xf16>
  %wide = aten.unsqueeze(%weight) {dim = -1} : (tensor<10xf16>) -> tensor<10x1xf16>
  %weighed = aten.mul.Tensor(%products, %wide) : (tensor<10x6xf16>, tensor<10x1xf16>) -> tensor<10x6xf16>
  %empty = aten.empty_like(%order) : (tensor<10xi64>) -> tensor<10xi64>
  %back = aten.index_put(%empty, %order, %count) {indices = #aten.operands<1>}
    : (tensor<10xi64>, tensor<10xi64>, tensor<10xi64>) -> tensor<10xi64>
  %placed = aten.index.Tensor(%weighed, %back) : (tensor<10x6xf16>, tensor<10xi64>) -> tensor<10x6xf16>
  %pairs = aten.view(%placed) {size = [5, 2, 6]} : (tensor<10x6xf16>) -> tensor<5x2x6xf16>
  %sum = aten.sum.dim_IntList(%pairs) {dim = [1]} : (tensor<5x2x6xf16>) -> tensor<5x6xf16>
  func.return %sum : tensor<5x6xf16>
}
