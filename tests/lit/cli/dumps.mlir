// RUN: spyre-opt %s -p cse,dce --print-ir-after=cse 2>&1 | filecheck %s --check-prefix=ONE
// RUN: spyre-opt %s -p cse,dce --print-ir-after-all 2>&1 | filecheck %s --check-prefix=ALL
// RUN: spyre-opt %s -p cse,dce -v 2>&1 | filecheck %s --check-prefix=LOG
// RUN: not spyre-opt %s -p cse --print-ir-after=dce 2>&1 | filecheck %s --check-prefix=BAD

// ONE: // -----// IR Dump After cse //----- //
// ONE-NOT: IR Dump After dce
// ALL: // -----// IR Dump After cse //----- //
// ALL: // -----// IR Dump After dce //----- //
// LOG: info: cse: 4 ops, {{[0-9.]+}} s
// LOG: info: dce: 4 ops, {{[0-9.]+}} s
// BAD: error: [SPY-I002] --print-ir-after=dce: the pipeline does not run this pass
// BAD: try: 'cse'
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  func.return %1 : i32
}
