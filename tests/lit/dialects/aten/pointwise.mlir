// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.add.Tensor(%{{.*}}, %{{.*}}) {alpha = 2 : i64} : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @add_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.add.Tensor(%a, %b) {alpha = 2 : i64} : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.add.Scalar(%{{.*}}) {other = 7.500000e-01 : f64, alpha = 2 : i64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @add_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.add.Scalar(%a) {other = 7.500000e-01 : f64, alpha = 2 : i64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.sub.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @sub_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.sub.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.sub.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @sub_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.sub.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.mul.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @mul_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.mul.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.mul.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @mul_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.mul.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.div.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @div_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.div.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.div.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @div_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.div.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.maximum(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @maximum(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.maximum(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.minimum(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @minimum(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.minimum(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.eq.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @eq_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.eq.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.eq.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @eq_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.eq.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.ne.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @ne_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.ne.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.ne.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @ne_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.ne.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.ge.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @ge_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.ge.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.ge.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @ge_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.ge.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.le.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @le_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.le.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.le.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @le_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.le.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.gt.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @gt_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.gt.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.gt.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @gt_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.gt.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.lt.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @lt_Tensor(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.lt.Tensor(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.lt.Scalar(%{{.*}}) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @lt_Scalar(%a: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.lt.Scalar(%a) {other = 7.500000e-01 : f64} : (tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.where.self(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<3x64xi1>, tensor<3x64xf32>, tensor<64xf32>) -> tensor<3x64xf32>
func.func @where_self(%a: tensor<3x64xi1>, %b: tensor<3x64xf32>, %c: tensor<64xf32>) -> tensor<3x64xf32> {
  %r = aten.where.self(%a, %b, %c) : (tensor<3x64xi1>, tensor<3x64xf32>, tensor<64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.neg(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @neg(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.neg(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.abs(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @abs(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.abs(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.exp(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @exp(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.exp(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.log(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @log(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.log(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.sqrt(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @sqrt(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.sqrt(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.rsqrt(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @rsqrt(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.rsqrt(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.reciprocal(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @reciprocal(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.reciprocal(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.tanh(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @tanh(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.tanh(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.floor(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @floor(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.floor(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.relu(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @relu(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.relu(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.sigmoid(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @sigmoid(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.sigmoid(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.softplus(%{{.*}}) {beta = 2.000000e+00 : f64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @softplus(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.softplus(%a) {beta = 2.0 : f64} : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.silu(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @silu(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.silu(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.mish(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xf32>
func.func @mish(%a: tensor<3x65xf32>) -> tensor<3x65xf32> {
  %r = aten.mish(%a) : (tensor<3x65xf32>) -> tensor<3x65xf32>
  func.return %r : tensor<3x65xf32>
}

// CHECK: aten.gelu(%{{.*}}) {approximate = "tanh"} : (tensor<4x5xf32>) -> tensor<4x5xf32>
func.func @gelu(%a: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %r = aten.gelu(%a) {approximate = "tanh"} : (tensor<4x5xf32>) -> tensor<4x5xf32>
  func.return %r : tensor<4x5xf32>
}

// CHECK: aten.clamp(%{{.*}}) {min = -5.000000e-01 : f64, max = 1.000000e+00 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
func.func @clamp(%a: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %r = aten.clamp(%a) {min = -5.000000e-01 : f64, max = 1.000000e+00 : f64} : (tensor<3x64xf32>) -> tensor<3x64xf32>
  func.return %r : tensor<3x64xf32>
}

// CHECK: aten.logical_not(%{{.*}}) : (tensor<3x65xf32>) -> tensor<3x65xi1>
func.func @logical_not(%a: tensor<3x65xf32>) -> tensor<3x65xi1> {
  %r = aten.logical_not(%a) : (tensor<3x65xf32>) -> tensor<3x65xi1>
  func.return %r : tensor<3x65xi1>
}

// CHECK: aten.logical_and(%{{.*}}, %{{.*}}) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
func.func @logical_and(%a: tensor<3x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xi1> {
  %r = aten.logical_and(%a, %b) : (tensor<3x64xf32>, tensor<3x64xf32>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}

// CHECK: aten.bitwise_and.Tensor(%{{.*}}, %{{.*}}) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
func.func @bitwise_and_Tensor(%a: tensor<3x64xi1>, %b: tensor<3x64xi1>) -> tensor<3x64xi1> {
  %r = aten.bitwise_and.Tensor(%a, %b) : (tensor<3x64xi1>, tensor<3x64xi1>) -> tensor<3x64xi1>
  func.return %r : tensor<3x64xi1>
}
