"""Mirror of `spyre_mlir.ranks`."""
