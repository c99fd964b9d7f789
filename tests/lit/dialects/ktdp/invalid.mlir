// RUN: spyre-opt %s --verify-diagnostics --split-input-file

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
func.func @view_rank(%x: index) {
  // expected-error@+1 {{sizes, strides, coordinate set and result have one rank, got 1, 1, 1 and 2}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<8x1xf16>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
func.func @view_size(%x: index) {
  // expected-error@+1 {{size 0 is 8, the result's extent is 9}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<9xf16>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 8 >= 0)>
func.func @view_set(%x: index) {
  // expected-error@+1 {{coordinate_set has 9 coordinates along d0, the size is 8}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<8xf16>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0)>
func.func @view_bound(%x: index) {
  // expected-error@+1 {{coordinate_set: d0 has no lower and upper bound of its own in affine_set<(d0) : (d0 >= 0)>}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<8xf16>
  func.return
}

// -----

#s = affine_set<(d0)[n] : (d0 >= 0, -d0 + n - 1 >= 0)>
func.func @view_symbols(%x: index) {
  // expected-error@+1 {{the coordinate set has 1 symbols for 0 sizes that are values}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<8xf16>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
func.func @view_core(%x: index) {
  // expected-error@+1 {{ct_id = 32, the card has 32 cores}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<ct_local, ct_id = 32>} : memref<8xf16>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
func.func @view_space(%x: index) {
  // expected-error@+1 {{the type says #ktdp.memory_space<ct_local>, the view says #ktdp.memory_space<global>}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<8xf16, #ktdp.memory_space<ct_local>>
  func.return
}

// -----

func.func @part_element(%a: memref<8xf16>, %b: memref<8xf32>) {
  // expected-error@+1 {{part 1 has elements of f32, the result of f16}}
  %d = ktdp.construct_distributed_memory_view (%a, %b : memref<8xf16>, memref<8xf32>) : memref<16xf16>
  func.return
}

// -----

func.func @part_rank(%a: memref<8xf16>, %b: memref<8x1xf16>) {
  // expected-error@+1 {{part 1 has rank 2, the result rank 1}}
  %d = ktdp.construct_distributed_memory_view (%a, %b : memref<8xf16>, memref<8x1xf16>) : memref<16xf16>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
#t = affine_set<(d0) : (d0 - 7 >= 0, -d0 + 14 >= 0)>
func.func @parts(%x: index) {
  %a = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #s, memory_space = #ktdp.memory_space<global>} : memref<8xf16>
  %b = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #t, memory_space = #ktdp.memory_space<global>} : memref<8xf16>
  // expected-error@+1 {{parts 0 and 1 hold the same coordinates; parts must be disjoint}}
  %d = ktdp.construct_distributed_memory_view (%a, %b : memref<8xf16>, memref<8xf16>) : memref<15xf16>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @tile_rank(%a: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{the view has rank 2, the start has 1 indices and access_tile_set 1}}
  %t = ktdp.construct_access_tile %a[%i] {access_tile_set = #s, access_tile_order = #m} : memref<8x8xf16> -> !ktdp.access_tile<8xindex>
  func.return
}

// -----

#s = affine_set<(d0, d1) : (d0 >= 0, -d0 + 7 >= 0, d1 >= 0, -d1 + 3 >= 0)>
#m = affine_map<(d0, d1) -> (d0, d0)>
func.func @tile_order(%a: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{the order lists each of the 2 dimensions of access_tile_set once, got (d0, d1) -> (d0, d0)}}
  %t = ktdp.construct_access_tile %a[%i, %i] {access_tile_set = #s, access_tile_order = #m} : memref<8x8xf16> -> !ktdp.access_tile<8x4xindex>
  func.return
}

// -----

#s = affine_set<(d0, d1) : (d0 >= 0, -d0 + 7 >= 0, d1 >= 0, -d1 + 3 >= 0)>
#m = affine_map<(d0, d1) -> (d1, d0)>
func.func @tile_shape(%a: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{access_tile_set gives a tile of 4x8, the result is 8x4}}
  %t = ktdp.construct_access_tile %a[%i, %i] {access_tile_set = #s, access_tile_order = #m} : memref<8x8xf16> -> !ktdp.access_tile<8x4xindex>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 - 1 >= 0, -d0 + 8 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @tile_start(%a: memref<8xf16>, %i: index) {
  // expected-error@+1 {{access_tile_set starts at 0, got [1]; add the start to the indices}}
  %t = ktdp.construct_access_tile %a[%i] {access_tile_set = #s, access_tile_order = #m} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  func.return
}

// -----

#s = affine_set<(d0)[n] : (d0 >= 0, -d0 + n >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @tile_symbols(%a: memref<8xf16>, %i: index) {
  // expected-error@+1 {{access_tile_set has no symbols, got 1; the extents of a tile are known}}
  %t = ktdp.construct_access_tile %a[%i] {access_tile_set = #s, access_tile_order = #m} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @tile_base(%a: memref<8xf16>, %i: index) {
  // expected-error@+1 {{base_map takes 1 indices, got (d0, d1) -> (d0)}}
  %t = ktdp.construct_access_tile %a[%i] {access_tile_set = #s, access_tile_order = #m, base_map = affine_map<(d0, d1) -> (d0)>} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @subscripts(%a: memref<8x8xf16>) {
  // expected-error@+1 {{the view has rank 2 and 1 subscripts}}
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%i) %a[(%i)] {variables_space_set = #s, variables_space_order = #m} : memref<8x8xf16> -> !ktdp.access_tile<8xindex>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @index_rank(%a: memref<8xf16>, %k: memref<8xi32>) {
  // expected-error@+1 {{subscript 0 has 2 expressions for a view of rank 1}}
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%i) %a[ind(%k[%i, %i])] {variables_space_set = #s, variables_space_order = #m} : memref<8xf16>, memref<8xi32> -> !ktdp.access_tile<8xindex>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @index_element(%a: memref<8xf16>) {
  // expected-error@+1 {{index views hold integers, got f16 in subscript 0}}
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%i) %a[ind(%a[%i])] {variables_space_set = #s, variables_space_order = #m} : memref<8xf16>, memref<8xf16> -> !ktdp.access_tile<8xindex>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @space_shape(%a: memref<8xf16>) {
  // expected-error@+1 {{variables_space_set gives a tile of 8, the result is 4}}
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%i) %a[(%i)] {variables_space_set = #s, variables_space_order = #m} : memref<8xf16> -> !ktdp.access_tile<4xindex>
  func.return
}

// -----

func.func @load_shape(%t: !ktdp.access_tile<32x64xindex>) {
  // expected-error@+1 {{the tensor is 16x64, the access tile 32x64; they must be equal}}
  %d = ktdp.load %t : !ktdp.access_tile<32x64xindex> -> tensor<16x64xf16>
  func.return
}

// -----

func.func @store_shape(%d: tensor<16x64xf16>, %t: !ktdp.access_tile<32x64xindex>) {
  // expected-error@+1 {{the tensor is 16x64, the access tile 32x64; they must be equal}}
  ktdp.store %d, %t : tensor<16x64xf16>, !ktdp.access_tile<32x64xindex>
  func.return
}

// -----

#s = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>
#m = affine_map<(d0) -> (d0)>
func.func @load_element(%a: memref<8xf16>, %i: index) {
  %t = ktdp.construct_access_tile %a[%i] {access_tile_set = #s, access_tile_order = #m} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  // expected-error@+1 {{the tensor has elements of f32, the view of f16}}
  %d = ktdp.load %t : !ktdp.access_tile<8xindex> -> tensor<8xf32>
  func.return
}

// -----

func.func @tile_id() attributes {grid = [4, 8]} {
  // expected-error@+1 {{one result per dimension of the grid: 1 results, the grid is [4, 8]}}
  %i = ktdp.get_compute_tile_id : index
  func.return
}

// -----

func.func @grid() attributes {grid = [8, 8]} {
  // expected-error@+1 {{grid [8, 8] has 64 cores, the card has 32}}
  %i, %j = ktdp.get_compute_tile_id : index, index
  func.return
}

// -----

func.func @grid_rank() attributes {grid = [2, 2, 2, 2]} {
  // expected-error@+1 {{grid is a list of 1 to 3 positive numbers, got [2 : i64, 2 : i64, 2 : i64, 2 : i64]}}
  %i = ktdp.get_compute_tile_id : index
  func.return
}

// -----

func.func @coreid(%i: index) attributes {grid = [32]} {
  // expected-error@+1 {{one coordinate per dimension of the grid [32], got 2}}
  %c = ktdp.coreid %i, %i : index
  func.return
}

// -----

func.func @members(%x: tensor<4xf16>) {
  // expected-error@+1 {{producer_tiles_per_group is a set of cores of a group, (i)[g] : (...), got affine_set<(d0) : (d0 >= 0)>}}
  %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i) : (i >= 0)> -> !ktdp.tile_future<tensor<4xf16>, groups = affine_set<(g) : (g == 0)>> {
  ^bb0(%g: index):
    ktdp.yield_partial %x : tensor<4xf16>
  }
  func.return
}

// -----

func.func @partial(%x: tensor<8xf16>) {
  // expected-error@+1 {{ktdp.yield_partial gives tensor<4xf16>, got tensor<8xf16>}}
  %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i >= 0, -i + g >= 0)> -> !ktdp.tile_future<tensor<4xf16>, groups = affine_set<(g) : (g == 0)>> {
  ^bb0(%g: index):
    ktdp.yield_partial %x : tensor<8xf16>
  }
  func.return
}

// -----

func.func @future_uses(%x: tensor<4xf16>) {
  // expected-error@+1 {{a future is taken by exactly one op, this one by 0}}
  %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i >= 0, -i + g >= 0)> -> !ktdp.tile_future<tensor<4xf16>, groups = affine_set<(g) : (g == 0)>> {
  ^bb0(%g: index):
    ktdp.yield_partial %x : tensor<4xf16>
  }
  func.return
}

// -----

func.func @identity(%f: !ktdp.tile_future<tensor<4xf16>, groups = affine_set<(g) : (g == 0)>>, %x: tensor<8xf16>) {
  // expected-error@+1 {{the future carries tensor<4xf16>, the identity is tensor<8xf16>}}
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = affine_set<(i)[g] : (i - g == 0)>, identity(%x : tensor<8xf16>) : !ktdp.tile_future<tensor<4xf16>, groups = affine_set<(g) : (g == 0)>> -> tensor<4xf16> {
  ^bb0(%a: tensor<4xf16>, %b: tensor<4xf16>):
    ktdp.yield_reduced %a : tensor<4xf16>
  }
  func.return
}

// -----

func.func @combiner(%f: !ktdp.tile_future<tensor<4xf16>, groups = affine_set<(g) : (g == 0)>>, %x: tensor<4xf16>) {
  // expected-error@+1 {{the block takes (tensor<4xf16>, tensor<4xf16>), got (tensor<4xf16>)}}
  %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = affine_set<(i)[g] : (i - g == 0)>, identity(%x : tensor<4xf16>) : !ktdp.tile_future<tensor<4xf16>, groups = affine_set<(g) : (g == 0)>> -> tensor<4xf16> {
  ^bb0(%a: tensor<4xf16>):
    ktdp.yield_reduced %a : tensor<4xf16>
  }
  func.return
}

// -----

func.func @parent(%x: tensor<4xf16>) {
  // expected-error@+1 {{'ktdp.yield_partial' expects parent op 'ktdp.inter_tile_produce'}}
  ktdp.yield_partial %x : tensor<4xf16>
}
