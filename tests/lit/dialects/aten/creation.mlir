// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s

// CHECK: aten.arange.start_step() {end = 5 : i64} : () -> tensor<5xf32>
func.func @arange_start_step() -> tensor<5xf32> {
  %r = aten.arange.start_step() {end = 5 : i64} : () -> tensor<5xf32>
  func.return %r : tensor<5xf32>
}
