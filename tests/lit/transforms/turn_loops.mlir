// RUN: spyre-opt -p turn-loops %s | filecheck %s

// CHECK-LABEL: func.func @turned
// CHECK-NEXT:  %[[END:.*]], %[[ROWS:.*]] = control.for_loop @step trips 12 carrying 1 slicing 1 backwards(%h, %x)
// CHECK-NEXT:  func.return %[[END]], %[[ROWS]] :
func.func @turned(%x: tensor<12x64xf32>, %h: tensor<64xf32>) -> (tensor<64xf32>, tensor<12x64xf32>) {
  %flipped = aten.flip(%x) {dims = [0]} : (tensor<12x64xf32>) -> tensor<12x64xf32>
  %end, %rows = control.for_loop @step trips 12 carrying 1 slicing 1 (%h, %flipped) : (tensor<64xf32>, tensor<12x64xf32>) -> (tensor<64xf32>, tensor<12x64xf32>)
  %y = aten.flip(%rows) {dims = [-2]} : (tensor<12x64xf32>) -> tensor<12x64xf32>
  func.return %end, %y : tensor<64xf32>, tensor<12x64xf32>
}

// What runs backwards already runs forwards then; a flip that others read stays.
// CHECK-LABEL: func.func @turned_back
// CHECK-NEXT:  %[[FLIP:.*]] = aten.flip(%x)
// CHECK-NEXT:  %[[END:.*]], %{{.*}} = control.for_loop @step trips 12 carrying 1 slicing 1(%h, %x)
// CHECK-NEXT:  func.return %[[END]], %[[FLIP]] :
func.func @turned_back(%x: tensor<12x64xf32>, %h: tensor<64xf32>) -> (tensor<64xf32>, tensor<12x64xf32>) {
  %flipped = aten.flip(%x) {dims = [0]} : (tensor<12x64xf32>) -> tensor<12x64xf32>
  %end, %rows = control.for_loop @step trips 12 carrying 1 slicing 1 backwards (%h, %flipped) : (tensor<64xf32>, tensor<12x64xf32>) -> (tensor<64xf32>, tensor<12x64xf32>)
  func.return %end, %flipped : tensor<64xf32>, tensor<12x64xf32>
}

// Rows that are read as the trips give them, and flips of other dimensions.
// CHECK-LABEL: func.func @read
// CHECK:       control.for_loop @step trips 12 carrying 1 slicing 1(%h, %flipped)
func.func @read(%x: tensor<12x64xf32>, %h: tensor<64xf32>) -> (tensor<12x64xf32>, tensor<12x64xf32>) {
  %flipped = aten.flip(%x) {dims = [0]} : (tensor<12x64xf32>) -> tensor<12x64xf32>
  %end, %rows = control.for_loop @step trips 12 carrying 1 slicing 1 (%h, %flipped) : (tensor<64xf32>, tensor<12x64xf32>) -> (tensor<64xf32>, tensor<12x64xf32>)
  %y = aten.flip(%rows) {dims = [0]} : (tensor<12x64xf32>) -> tensor<12x64xf32>
  func.return %rows, %y : tensor<12x64xf32>, tensor<12x64xf32>
}
// CHECK-LABEL: func.func @columns
// CHECK:       control.for_loop @step trips 12 carrying 1 slicing 1(%h, %flipped)
func.func @columns(%x: tensor<12x64xf32>, %h: tensor<64xf32>) -> tensor<64xf32> {
  %flipped = aten.flip(%x) {dims = [0, 1]} : (tensor<12x64xf32>) -> tensor<12x64xf32>
  %end, %rows = control.for_loop @step trips 12 carrying 1 slicing 1 (%h, %flipped) : (tensor<64xf32>, tensor<12x64xf32>) -> (tensor<64xf32>, tensor<12x64xf32>)
  func.return %end : tensor<64xf32>
}
func.func private @step(%h: tensor<64xf32>, %e: tensor<1x64xf32>) -> (tensor<64xf32>, tensor<1x64xf32>) {
  func.return %h, %e : tensor<64xf32>, tensor<1x64xf32>
}
