// exp(-x * x), the square kept in the scratchpads
// Written by `tools/generate.py` from `tests/data/ktir/lx_handoff.mlir`; edit that and run `python3 tools/dev.py gen`.
builtin.module {
  func.func @lx_handoff(%x: index, %z: index) attributes {grid = [32]} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %lx_base = arith.constant 262144 : index
    %core = ktdp.get_compute_tile_id : index
    %row = arith.muli %core, %c32 : index
    %xv = ktdp.construct_memory_view %x, sizes: [1024, 256], strides: [256, 1] {coordinate_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 1023 >= 0, d1 >= 0, -d1 + 255 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<1024x256xf16>
    %zv = ktdp.construct_memory_view %z, sizes: [1024, 256], strides: [256, 1] {coordinate_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 1023 >= 0, d1 >= 0, -d1 + 255 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<1024x256xf16>
    %lv = ktdp.construct_memory_view %lx_base, sizes: [32, 256], strides: [256, 1] {coordinate_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 31 >= 0, d1 >= 0, -d1 + 255 >= 0)>, memory_space = #ktdp.memory_space<ct_local>} : memref<32x256xf16>
    %xt = ktdp.construct_access_tile %xv[%row, %c0] {access_tile_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 31 >= 0, d1 >= 0, -d1 + 255 >= 0)>, access_tile_order = affine_map<(d0, d1) -> (d0, d1)>} : memref<1024x256xf16> -> !ktdp.access_tile<32x256xindex>
    %v = ktdp.load %xt : !ktdp.access_tile<32x256xindex> -> tensor<32x256xf16>
    %sq = arith.mulf %v, %v : tensor<32x256xf16>
    %lt = ktdp.construct_access_tile %lv[%c0, %c0] {access_tile_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 31 >= 0, d1 >= 0, -d1 + 255 >= 0)>, access_tile_order = affine_map<(d0, d1) -> (d0, d1)>} : memref<32x256xf16> -> !ktdp.access_tile<32x256xindex>
    ktdp.store %sq, %lt : tensor<32x256xf16>, !ktdp.access_tile<32x256xindex>
    %back = ktdp.load %lt : !ktdp.access_tile<32x256xindex> -> tensor<32x256xf16>
    %n = arith.negf %back : tensor<32x256xf16>
    %e = math.exp %n : tensor<32x256xf16>
    %zt = ktdp.construct_access_tile %zv[%row, %c0] {access_tile_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 31 >= 0, d1 >= 0, -d1 + 255 >= 0)>, access_tile_order = affine_map<(d0, d1) -> (d0, d1)>} : memref<1024x256xf16> -> !ktdp.access_tile<32x256xindex>
    ktdp.store %e, %zt : tensor<32x256xf16>, !ktdp.access_tile<32x256xindex>
    func.return
  }
}
