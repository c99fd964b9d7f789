// Written by tools/generate.py from the definitions in spyre_mlir/dialects: mlir-opt --irdl-file=THIS_FILE.
irdl.dialect @sdscbundle {
  irdl.type @input_arg {
    %p0 = irdl.any
    %p1 = irdl.any
    %p2 = irdl.any
    irdl.parameters(element: %p0, granularity: %p1, max_value: %p2)
  }
  irdl.operation @sdsc_execute {
    %o0 = irdl.any
    irdl.operands(addresses: variadic %o0)
    %a0 = irdl.any
    irdl.attributes {"sdsc_filename" = %a0}
  }
  irdl.operation @input_arg_extract {
    %o0 = irdl.base @sdscbundle::@input_arg
    irdl.operands(arg: single %o0)
    %r0 = irdl.any
    irdl.results(result: single %r0)
    %a0 = irdl.any
    irdl.attributes {"field" = %a0}
  }
  irdl.operation @device_mem_allocate {
    %r0 = irdl.any
    irdl.results(result: single %r0)
    %a0 = irdl.any
    irdl.attributes {"size" = %a0}
  }
}
