// Written by tools/generate.py from the definitions in spyre_mlir/dialects: mlir-opt --irdl-file=THIS_FILE.
irdl.dialect @ktdp {
  irdl.type @access_tile {
    %p0 = irdl.any
    %p1 = irdl.any
    irdl.parameters(extents: %p0, element: %p1)
  }
  irdl.type @tile_future {
    %p0 = irdl.any
    %p1 = irdl.any
    irdl.parameters(partial: %p0, groups: %p1)
  }
  irdl.attribute @memory_space {
    %p0 = irdl.any
    %p1 = irdl.any
    irdl.parameters(kind: %p0, owner: %p1)
  }
  irdl.attribute @spyre_memory_space {
    %p0 = irdl.any
    %p1 = irdl.any
    irdl.parameters(kind: %p0, owner: %p1)
  }
  irdl.operation @get_compute_tile_id {
    %r0 = irdl.any
    irdl.results(ids: variadic %r0)
  }
  irdl.operation @coreid {
    %o0 = irdl.any
    irdl.operands(coordinates: variadic %o0)
    %r0 = irdl.any
    irdl.results(result: single %r0)
  }
  irdl.operation @construct_memory_view {
    %o0 = irdl.any
    %o1 = irdl.any
    %o2 = irdl.any
    irdl.operands(offset: single %o0, sizes: variadic %o1, strides: variadic %o2)
    %r0 = irdl.any
    irdl.results(result: single %r0)
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    irdl.attributes {"static_sizes" = %a0, "static_strides" = %a1, "coordinate_set" = %a2, "memory_space" = %a3}
  }
  irdl.operation @construct_distributed_memory_view {
    %o0 = irdl.any
    irdl.operands(memrefs: variadic %o0)
    %r0 = irdl.any
    irdl.results(result: single %r0)
  }
  irdl.operation @construct_access_tile {
    %o0 = irdl.any
    %o1 = irdl.any
    irdl.operands(view: single %o0, indices: variadic %o1)
    %r0 = irdl.base @ktdp::@access_tile
    irdl.results(result: single %r0)
    %a0 = irdl.any
    %a1 = irdl.any
    irdl.attributes {"access_tile_set" = %a0, "access_tile_order" = %a1}
  }
  irdl.operation @construct_indirect_access_tile {
    %o0 = irdl.any
    %o1 = irdl.any
    %o2 = irdl.any
    irdl.operands(view: single %o0, indirect_memrefs: variadic %o1, captured_variables: variadic %o2)
    %r0 = irdl.base @ktdp::@access_tile
    irdl.results(result: single %r0)
    %a0 = irdl.any
    %a1 = irdl.any
    %a2 = irdl.any
    %a3 = irdl.any
    irdl.attributes {"per_dim_subscript_kinds" = %a0, "per_dim_subscript_maps" = %a1, "variables_space_set" = %a2, "variables_space_order" = %a3}
  }
  irdl.operation @load {
    %o0 = irdl.base @ktdp::@access_tile
    irdl.operands(tile: single %o0)
    %r0 = irdl.any
    irdl.results(result: single %r0)
  }
  irdl.operation @store {
    %o0 = irdl.any
    %o1 = irdl.base @ktdp::@access_tile
    irdl.operands(value: single %o0, tile: single %o1)
  }
  irdl.operation @inter_tile_produce {
    %r0 = irdl.base @ktdp::@tile_future
    irdl.results(future: single %r0)
    %a0 = irdl.any
    irdl.attributes {"producer_tiles_per_group" = %a0}
    %body = irdl.region
    irdl.regions(body: %body)
  }
  irdl.operation @yield_partial {
    %o0 = irdl.any
    irdl.operands(value: single %o0)
  }
  irdl.operation @inter_tile_reduce {
    %o0 = irdl.base @ktdp::@tile_future
    %o1 = irdl.any
    irdl.operands(future: single %o0, identity: single %o1)
    %r0 = irdl.any
    irdl.results(result: single %r0)
    %a0 = irdl.any
    irdl.attributes {"consumer_tiles_per_group" = %a0}
    %combiner = irdl.region
    irdl.regions(combiner: %combiner)
  }
  irdl.operation @yield_reduced {
    %o0 = irdl.any
    irdl.operands(value: single %o0)
  }
}
