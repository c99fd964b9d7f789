// relu(x @ w + b)
// Written by `tools/generate.py` from `examples/affine_relu.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>) {
    %arg = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %0 = arith.constant 128 : index
    %1 = arith.addi %arg, %0 : index
    %arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
    %arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
    %arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
    %2 = arith.addi %arg_3, %0 : index
    sdscbundle.sdsc_execute (%arg, %1, %arg_1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3]}
    sdscbundle.sdsc_execute (%arg_2) {sdsc_filename="sdsc_1.json", symbol_ids=[-4]}
    sdscbundle.sdsc_execute (%arg_3, %2) {sdsc_filename="sdsc_2.json", symbol_ids=[-5, -6]}
    func.return
  }
}
