// RUN: not spyre-opt %s 2>&1 | filecheck %s

func.func @f() -> i32 {
  // CHECK: error: {{.*}}use_before_definition.mlir:6:3: 'arith.addi': operand #0 (%x) of 'arith.addi' is used before it is defined
  // CHECK-NEXT: %y = arith.addi %x, %x : i32
  %y = arith.addi %x, %x : i32
  %x = arith.constant 1 : i32
  func.return %y : i32
}
