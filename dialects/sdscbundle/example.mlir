// relu(x @ w + b)
// Written by `tools/generate.py` from `examples/affine_relu.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %arg_2_base_addr: !sdscbundle.input_arg<index>, %arg_3_base_addr: !sdscbundle.input_arg<index>) {
    %arg = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
    %0 = arith.constant 128 : index
    %1 = arith.addi %arg, %0 : index
    %arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
    %pool = sdscbundle.device_mem_allocate 512 bytes : index
    %2 = arith.addi %pool, %0 : index
    %arg_2 = sdscbundle.input_arg_extract value from %arg_2_base_addr : !sdscbundle.input_arg<index> -> index
    %3 = arith.constant 256 : index
    %4 = arith.addi %pool, %3 : index
    %5 = arith.constant 384 : index
    %6 = arith.addi %pool, %5 : index
    %arg_3 = sdscbundle.input_arg_extract value from %arg_3_base_addr : !sdscbundle.input_arg<index> -> index
    %7 = arith.addi %arg_3, %0 : index
    sdscbundle.sdsc_execute (%arg, %1, %arg_1, %pool, %2) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4, -5]}
    sdscbundle.sdsc_execute (%pool, %2, %arg_2, %4, %6) {sdsc_filename="sdsc_1.json", symbol_ids=[-6, -7, -8, -9, -10]}
    sdscbundle.sdsc_execute (%4, %6, %arg_3, %7) {sdsc_filename="sdsc_2.json", symbol_ids=[-11, -12, -13, -14]}
    func.return
  }
}
