// RUN: spyre-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{tile element type must be index, got f16}}
func.func @tile_element(%t: !ktdp.access_tile<4x8xf16>) { func.return }

// -----

// expected-error@+1 {{an access tile has known extents of at least 1, got ?}}
func.func @tile_extent(%t: !ktdp.access_tile<?x8xindex>) { func.return }

// -----

// expected-error@+1 {{a future carries a tensor, got f16}}
func.func @future(%t: !ktdp.tile_future<f16, groups = affine_set<(g) : (g == 0)>>) { func.return }

// -----

// expected-error@+1 {{groups is a set of one dimension without symbols, got affine_set<(d0, d1) : (d0 == 0)>}}
func.func @groups(%t: !ktdp.tile_future<tensor<4xf16>, groups = affine_set<(g, h) : (g == 0)>>) { func.return }

// -----

// expected-error@+1 {{unknown memory space lx; try global or ct_local}}
func.func @space() attributes {s = #ktdp.memory_space<lx>} { func.return }

// -----

// expected-error@+1 {{unknown memory space global; try HBM or LX}}
func.func @older_space() attributes {s = #ktdp.spyre_memory_space<global>} { func.return }

// -----

// expected-error@+1 {{ct_id is only valid for ct_local, got global}}
func.func @owner() attributes {s = #ktdp.memory_space<global, ct_id = 3>} { func.return }

// -----

// expected-error@+1 {{core is only valid for LX, got HBM}}
func.func @older_owner() attributes {s = #ktdp.spyre_memory_space<HBM, core = 3>} { func.return }

// -----

#m = affine_map<(d0) -> (d0)>
func.func @tile_missing(%a: memref<8xf16>, %i: index) {
  // expected-error@+1 {{expected access_tile_set among the attributes}}
  %t = ktdp.construct_access_tile %a[%i] {access_tile_order = #m} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  func.return
}

// -----

#m = affine_map<(d0) -> (d0)>
func.func @tile_kind(%a: memref<8xf16>, %i: index) {
  // expected-error@+1 {{access_tile_set: expected affine_set, got affine_map<(d0) -> (d0)>}}
  %t = ktdp.construct_access_tile %a[%i] {access_tile_set = #m, access_tile_order = #m} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  func.return
}

