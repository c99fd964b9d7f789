// RUN: spyre-opt %s --print-debuginfo | spyre-opt --print-debuginfo | filecheck %s

// A written location is kept; an op without one gets its place in this file.

// CHECK: func.func @f(%a: i32 loc("model.py":1:2))
func.func @f(%a: i32 loc("model.py":1:2)) -> i32 {
  // CHECK-NEXT: arith.addi %a, %a : i32 loc("{{.*}}locations.mlir":8:3)
  %0 = arith.addi %a, %a : i32
  // CHECK-NEXT: arith.addi {{.*}} loc(callsite("callee" at "model.py":4:5))
  %1 = arith.addi %0, %a : i32 loc(callsite("callee" at "model.py":4:5))
  // CHECK-NEXT: func.return %1 : i32 loc("model.py":3:4)
  func.return %1 : i32 loc("model.py":3:4)
}
