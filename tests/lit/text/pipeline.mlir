// RUN: spyre-opt %s --pass-pipeline='builtin.module(func.func(cse),dce)' -o %t
// RUN: cat %t | filecheck %s
// RUN: not spyre-opt %s --pass-pipeline='builtin.module(csee)' 2>&1 | filecheck %s --check-prefix UNKNOWN

// UNKNOWN: error: {{.*}}unknown pass 'csee'
// UNKNOWN-NEXT: try: 'cse'

// CHECK-LABEL: func.func @f
func.func @f(%a: i32) -> i32 {
  // CHECK-NEXT: arith.addi
  // CHECK-NEXT: func.return
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  func.return %1 : i32
}
