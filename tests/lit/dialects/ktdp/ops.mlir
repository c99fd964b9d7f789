// RUN: spyre-opt %s | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | spyre-opt | filecheck %s
// RUN: spyre-opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

#rows = affine_set<(i, j) : (i >= 0, -i + 63 >= 0, j >= 0, -j + 127 >= 0)>
#left = affine_set<(d0, d1) : (d0 >= 0, 31 - d0 >= 0, d1 >= 0, d1 <= 127)>
#right = affine_set<(d0, d1) : (d0 >= 32, -d0 + 63 >= 0, d1 >= 0, -d1 + 127 >= 0)>
#box = affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 15 >= 0)>
#same = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>
#team = affine_set<(i)[g] : (i - 4 * g >= 0, -i + 4 * g + 3 >= 0)>

// CHECK-LABEL: func.func @views(%x: index, %y: index, %n: index) attributes {grid = [4 : i64, 8 : i64]}
func.func @views(%x: index, %y: index, %n: index) attributes {grid = [4, 8]} {
  // CHECK-NEXT: %i, %j = ktdp.get_compute_tile_id : index, index
  // GENERIC: %i, %j = "ktdp.get_compute_tile_id"() : () -> (index, index)
  %i, %j = ktdp.get_compute_tile_id : index, index
  // CHECK-NEXT: %c = ktdp.coreid %i, %j : index
  %c = ktdp.coreid %i, %j : index
  // CHECK-NEXT: %v = ktdp.construct_memory_view %x, sizes: [64, 128], strides: [128, 1] {coordinate_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 63 >= 0, d1 >= 0, -d1 + 127 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<64x128xf16>
  // GENERIC: "ktdp.construct_memory_view"(%x) <{static_sizes = array<i64: 64, 128>, static_strides = array<i64: 128, 1>
  %v = ktdp.construct_memory_view %x, sizes: [64, 128], strides: [128, 1] {
    coordinate_set = #rows, memory_space = #ktdp.memory_space<global>
  } : memref<64x128xf16>
  // CHECK-NEXT: sizes: [%n, 128], strides: [%n, 1] {coordinate_set = affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + 127 >= 0)>, memory_space = #ktdp.memory_space<ct_local>} : memref<?x128xf16>
  %dynamic = ktdp.construct_memory_view %x, sizes: [%n, 128], strides: [%n, 1] {
    coordinate_set = affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + 127 >= 0)>,
    memory_space = #ktdp.memory_space<ct_local>
  } : memref<?x128xf16>
  // CHECK-NEXT: {coordinate_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 31 >= 0, d1 >= 0, d1 - 127 <= 0)>, memory_space = #ktdp.memory_space<ct_local, ct_id = 3>} : memref<32x128xf16>
  %a = ktdp.construct_memory_view %x, sizes: [32, 128], strides: [128, 1] {
    coordinate_set = #left, memory_space = #ktdp.memory_space<ct_local, ct_id = 3>
  } : memref<32x128xf16>
  // CHECK-NEXT: {coordinate_set = affine_set<(d0, d1) : (d0 - 32 >= 0, -d0 + 63 >= 0, d1 >= 0, -d1 + 127 >= 0)>, memory_space = #ktdp.spyre_memory_space<LX, core = 4>} : memref<32x128xf16>
  %b = ktdp.construct_memory_view %x, sizes: [32, 128], strides: [128, 1] {
    coordinate_set = #right, memory_space = #ktdp.spyre_memory_space<LX, core = 4>
  } : memref<32x128xf16>
  // CHECK-NEXT: %d = ktdp.construct_distributed_memory_view (%a, %b : memref<32x128xf16>, memref<32x128xf16>) : memref<64x128xf16>
  %d = ktdp.construct_distributed_memory_view (%a, %b : memref<32x128xf16>, memref<32x128xf16>) : memref<64x128xf16>
  // CHECK-NEXT: %t = ktdp.construct_access_tile %d[%i, %j] {access_tile_set = affine_set<{{.*}}>, access_tile_order = affine_map<(d0, d1) -> (d0, d1)>} : memref<64x128xf16> -> !ktdp.access_tile<4x16xindex>
  // GENERIC: "ktdp.construct_access_tile"(%d, %i, %j) <{access_tile_set = affine_set<
  %t = ktdp.construct_access_tile %d[%i, %j] {
    access_tile_set = #box, access_tile_order = #same
  } : memref<64x128xf16> -> !ktdp.access_tile<4x16xindex>
  // CHECK-NEXT: access_tile_order = affine_map<(d0, d1) -> (d1, d0)>, base_map = affine_map<(d0) -> (4 * d0 + 1, d0 floordiv 4)>} : memref<64x128xf16> -> !ktdp.access_tile<16x4xindex>
  %u = ktdp.construct_access_tile %v[%i] {
    access_tile_set = #box, access_tile_order = #swap, base_map = affine_map<(d0) -> (d0 * 4 + 1, d0 floordiv 4)>
  } : memref<64x128xf16> -> <16x4xindex>
  // CHECK-NEXT: %l = ktdp.load %t : !ktdp.access_tile<4x16xindex> -> tensor<4x16xf16>
  // GENERIC: %l = "ktdp.load"(%t) : (!ktdp.access_tile<4x16xindex>) -> tensor<4x16xf16>
  %l = ktdp.load %t : <4x16xindex> -> tensor<4x16xf16>
  // CHECK-NEXT: ktdp.store %l, %t : tensor<4x16xf16>, !ktdp.access_tile<4x16xindex>
  ktdp.store %l, %t : tensor<4x16xf16>, <4x16xindex>
  func.return
}

// CHECK-LABEL: func.func @paged
func.func @paged(%x: index, %p: index, %start: index) {
  %v = ktdp.construct_memory_view %x, sizes: [64, 128], strides: [128, 1] {
    coordinate_set = #rows, memory_space = #ktdp.spyre_memory_space<HBM>
  } : memref<64x128xf16>
  %k = ktdp.construct_memory_view %p, sizes: [4], strides: [1] {
    coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>
  } : memref<4xi32>
  // CHECK: %t = ktdp.construct_indirect_access_tile intermediate_variables(%_iv0, %_iv1) %v[ind(%k[%_iv1 floordiv 4]), ((2 * %_iv0 - %start) + (%_iv1 mod 8))] {variables_space_set = affine_set<{{.*}}>, variables_space_order = affine_map<(d0, d1) -> (d0, d1)>} : memref<64x128xf16>, memref<4xi32> -> !ktdp.access_tile<4x16xindex>
  // GENERIC: "ktdp.construct_indirect_access_tile"(%v, %k, %start) <{per_dim_subscript_kinds = [true, false], per_dim_subscript_maps = [affine_map<
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%m, %w)
      %v[ind(%k[%w floordiv 4]), (%m * 2 - %start + %w mod 8)] {
    variables_space_set = #box, variables_space_order = #same
  } : memref<64x128xf16>, memref<4xi32> -> !ktdp.access_tile<4x16xindex>
  func.return
}

// CHECK-LABEL: func.func @exchange
func.func @exchange(%x: tensor<4xf32>) attributes {grid = [32]} {
  // CHECK-NEXT: %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(d0)[s0] : (d0 - 4 * s0 >= 0, -d0 + 4 * s0 + 3 >= 0)> : tensor<4xf32> -> !ktdp.tile_future<tensor<4xf32>, groups = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>> {
  // CHECK-NEXT: ^bb0(%g: index):
  // CHECK-NEXT: ktdp.yield_partial %x : tensor<4xf32>
  // CHECK-NEXT: }
  // GENERIC: "ktdp.inter_tile_produce"() <{producer_tiles_per_group = affine_set<
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #team
      -> !ktdp.tile_future<(tensor<4xf32>), groups = affine_set<(g) : (g >= 0, -g + 7 >= 0)>> {
  ^bb0(%g: index):
    ktdp.yield_partial %x : tensor<4xf32>
  }
  // CHECK-NEXT: %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = affine_set<{{.*}}>, identity(%x : tensor<4xf32>) : !ktdp.tile_future<tensor<4xf32>, groups = affine_set<{{.*}}>> -> tensor<4xf32> {
  // CHECK-NEXT: ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
  // CHECK-NEXT: %s = arith.addf %a, %b : tensor<4xf32>
  // CHECK-NEXT: ktdp.yield_reduced %s : tensor<4xf32>
  // CHECK-NEXT: }
  // GENERIC: "ktdp.inter_tile_reduce"(%f, %x) <{consumer_tiles_per_group = affine_set<
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #team, identity(%x : tensor<4xf32>)
      : !ktdp.tile_future<tensor<4xf32>, groups = affine_set<(g) : (g >= 0, -g + 7 >= 0)>> -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %s = arith.addf %a, %b : tensor<4xf32>
    ktdp.yield_reduced %s : tensor<4xf32>
  }
  func.return
}

// CHECK-LABEL: func.func @format(%a: memref<64x!spyreop.df16>)
func.func @format(%a: memref<64x!spyreop.df16>) {
  func.return
}
