// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt --print-op-generic %s | spyre-opt | filecheck %s

func.func @sdsc_bundle(%arg_base_addr: !sdscbundle.input_arg<index>, %n: !sdscbundle.input_arg<index, granularity=64, max_value=4096>) {
  %pool = sdscbundle.device_mem_allocate 65536 bytes : index
  %a = sdscbundle.input_arg_extract value from %arg_base_addr : !sdscbundle.input_arg<index> -> index
  %g = sdscbundle.input_arg_extract granularity from %n : !sdscbundle.input_arg<index, granularity=64, max_value=4096> -> index
  sdscbundle.sdsc_execute (%a, %pool) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2]}
  sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"}
  return
}

// CHECK:      func.func @sdsc_bundle(%arg_base_addr: !sdscbundle.input_arg<index>, %n: !sdscbundle.input_arg<index, granularity=64, max_value=4096>) {
// CHECK-NEXT:   %pool = sdscbundle.device_mem_allocate 65536 bytes : index
// CHECK-NEXT:   %a = sdscbundle.input_arg_extract value from %arg_base_addr : !sdscbundle.input_arg<index> -> index
// CHECK-NEXT:   %g = sdscbundle.input_arg_extract granularity from %n : !sdscbundle.input_arg<index, granularity=64, max_value=4096> -> index
// CHECK-NEXT:   sdscbundle.sdsc_execute (%a, %pool) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2]}
// CHECK-NEXT:   sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"}
