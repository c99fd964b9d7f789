"""Pieces of programs that run, or end in a fault by one piece that is wrong, and the check of such a fault."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.errors import MachineFault
from tests.unit.machine.ktdp.ktir_programs import copy, function, run, tile, view

V, W = view("v", "x", (16,)), view("w", "y", (16,))
BARRIER = """
%zero = arith.constant dense<0.0> : tensor<1xf16>
%fut = ktdp.inter_tile_produce producer_tiles_per_group = TEAM : tensor<1xf16> -> !ktdp.tile_future<tensor<1xf16>, groups = affine_set<(g) : (g == 0)>> {
^bb0(%g: index):
  ktdp.yield_partial %zero : tensor<1xf16>
}
%done = ktdp.inter_tile_reduce(%fut) consumer_tiles_per_group = TEAM, identity(%zero : tensor<1xf16>) : !ktdp.tile_future<tensor<1xf16>, groups = affine_set<(g) : (g == 0)>> -> tensor<1xf16> {
^bb0(%l: tensor<1xf16>, %r: tensor<1xf16>):
  %sum = arith.addf %l, %r : tensor<1xf16>
  ktdp.yield_reduced %sum : tensor<1xf16>
}
"""
BOTH, ZERO = "affine_set<(i)[g] : (i - 2 * g >= 0, -i + 2 * g + 1 >= 0)>", "affine_set<(i)[g] : (i - 2 * g == 0)>"


def fails(module: ModuleOp, kind: str, says: str, **arrays: object) -> None:
    with pytest.raises(MachineFault, match=says) as caught:
        run(module, **arrays)  # type: ignore[arg-type]
    assert caught.value.kind == kind


def copy_program(source: str, target: str, *between: str, grid: str = "[1]", shape: tuple[int, ...] = (8,)) -> ModuleOp:
    """Copy eight elements from x to y: the views are given, the tiles start at %p and %q."""
    return function("%x: index, %y: index", source, target, *between, copy("s", "t", shape), grid=grid)


def starts(p: str, q: str) -> str:
    return tile("s", "v", [p], (8,), (16,)) + tile("t", "w", [q], (8,), (16,))
