// Written by tools/generate.py from the definitions in spyre_mlir/dialects: mlir-opt --irdl-file=THIS_FILE.
irdl.dialect @control {
  irdl.operation @cond {
    %o0 = irdl.any
    %o1 = irdl.any
    irdl.operands(predicate: single %o0, inputs: variadic %o1)
    %r0 = irdl.any
    irdl.results(outputs: variadic %r0)
    %a0 = irdl.any
    %a1 = irdl.any
    irdl.attributes {"then" = %a0, "otherwise" = %a1}
  }
  irdl.operation @while_loop {
    %o0 = irdl.any
    irdl.operands(inputs: variadic %o0)
    %r0 = irdl.any
    irdl.results(outputs: variadic %r0)
    %a0 = irdl.any
    %a1 = irdl.any
    irdl.attributes {"condition" = %a0, "body" = %a1}
  }
  irdl.operation @for_loop {
    %o0 = irdl.any
    irdl.operands(inputs: variadic %o0)
    %r0 = irdl.any
    irdl.results(outputs: variadic %r0)
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    irdl.attributes {"body" = %a0, "trips" = %a1, "carried" = %a2, "sliced" = %a3}
  }
}
