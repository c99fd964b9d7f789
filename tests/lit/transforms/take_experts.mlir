// RUN: spyre-opt -p take-experts %s | filecheck %s

// A token has 2 of 4 experts. The host reads which, and each row meets a matrix that starts where it says.

// CHECK:      %[[BEST:.*]], %[[CHOSEN:.*]] = aten.topk
// CHECK:      %[[FLAT:.*]] = aten.view(%[[CHOSEN]])
// CHECK-NOT:  sort
// CHECK:      %[[A:.*]], %[[B:.*]] = aten.call "aten.split.Tensor"(%[[FLAT]]) {{.*}} host because "it says where the next launch reads"
// CHECK-NEXT: %[[MATRIX:.*]] = aten.index_select(%w, %[[A]]) {dim = 0 : i64} attributes {spyre.placed} : (tensor<4x256x256xf16>, tensor<1xi64>) -> tensor<1x256x256xf16>
// CHECK-NEXT: %[[OWN:.*]] = aten.view(%[[MATRIX]])
// CHECK-NEXT: %[[FIRST:.*]] = aten.mm(%x, %[[OWN]])
// CHECK-NEXT: aten.index_select(%w, %[[B]])
// CHECK:      %[[SECOND:.*]] = aten.mm(%x, %{{.*}})
// CHECK-NEXT: %[[BOTH:.*]] = aten.cat(%[[FIRST]], %[[SECOND]])
// CHECK:      aten.mul.Tensor(%[[BOTH]], %{{.*}})
// CHECK:      aten.sum.dim_IntList(%{{.*}}) {dim = array<i64: 1>} {{.*}} -> tensor<1x256xf16>
// CHECK-NOT:  grouped_mm
func.func @main(%x: tensor<1x256xf16>, %scores: tensor<1x4xf16>, %w: tensor<4x256x256xf16> {aten.kind = "parameter"},
                %count: tensor<2xi64> {aten.kind = "constant", aten.counts = true}) -> tensor<1x256xf16> {
  %best, %chosen = aten.topk(%scores) {k = 2} : (tensor<1x4xf16>) -> (tensor<1x2xf16>, tensor<1x2xi64>)
  %weights = aten.view(%best) {size = [2]} : (tensor<1x2xf16>) -> tensor<2xf16>
  %experts = aten.view(%chosen) {size = [2]} : (tensor<1x2xi64>) -> tensor<2xi64>
  %sorted, %order = aten.sort(%experts) : (tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>)
  %token = aten.div.Tensor_mode(%order) {other = 2, rounding_mode = "floor"} : (tensor<2xi64>) -> tensor<2xi64>
  %rows = aten.index.Tensor(%x, %token) : (tensor<1x256xf16>, tensor<2xi64>) -> tensor<2x256xf16>
  %weight = aten.index.Tensor(%weights, %order) : (tensor<2xf16>, tensor<2xi64>) -> tensor<2xf16>
  %floats = aten._to_copy(%sorted) {dtype = f32} : (tensor<2xi64>) -> tensor<2xf32>
  %sizes = aten.histc(%floats) {bins = 4, max = 3} : (tensor<2xf32>) -> tensor<4xf32>
  %integers = aten._to_copy(%sizes) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  %ends = aten.cumsum(%integers) {dim = 0} : (tensor<4xi32>) -> tensor<4xi32>
  %products = aten.call "transformers::grouped_mm_fallback"(%rows, %w, %ends)
    : (tensor<2x256xf16>, tensor<4x256x256xf16>, tensor<4xi32>) -> tensor<2x256xf16>
  %wide = aten.unsqueeze(%weight) {dim = -1} : (tensor<2xf16>) -> tensor<2x1xf16>
  %weighed = aten.mul.Tensor(%products, %wide) : (tensor<2x256xf16>, tensor<2x1xf16>) -> tensor<2x256xf16>
  %empty = aten.empty_like(%order) : (tensor<2xi64>) -> tensor<2xi64>
  %back = aten.index_put(%empty, %order, %count) {indices = #aten.operands<1>}
    : (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %placed = aten.index.Tensor(%weighed, %back) : (tensor<2x256xf16>, tensor<2xi64>) -> tensor<2x256xf16>
  %pairs = aten.view(%placed) {size = [1, 2, 256]} : (tensor<2x256xf16>) -> tensor<1x2x256xf16>
  %sum = aten.sum.dim_IntList(%pairs) {dim = [1]} : (tensor<1x2x256xf16>) -> tensor<1x256xf16>
  func.return %sum : tensor<1x256xf16>
}
