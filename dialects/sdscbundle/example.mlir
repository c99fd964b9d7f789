// relu(x @ w + b)
// Written by `tools/generate.py` from `examples/affine_relu.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>) {
    %arg0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %c128 = arith.constant 128 : index
    %arg0_at128 = arith.addi %arg0, %c128 : index
    %arg1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
    %arg2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
    %arg3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
    %arg3_at128 = arith.addi %arg3, %c128 : index
    sdscbundle.sdsc_execute (%arg0, %arg0_at128, %arg1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3]}
    sdscbundle.sdsc_execute (%arg2) {sdsc_filename="sdsc_1.json", symbol_ids=[-4]}
    sdscbundle.sdsc_execute (%arg3, %arg3_at128) {sdsc_filename="sdsc_2.json", symbol_ids=[-5, -6]}
    func.return
  }
}
