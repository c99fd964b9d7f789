"""Loops of kernels as work is divided: their order, by hand."""

from __future__ import annotations

from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.kernels.loops import columns_first, counted_along, last_first, loops_of
from spyre_mlir.universe import make_context

Q = "!spyre.tensor<[8, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>"
K = "!spyre.tensor<[2, 128, 64] x SEN169_FP16, order [0, 2, 1], stick 1, hbm>"
S = "!spyre.tensor<[8, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>"


def product(loops: str) -> ComputeOp:
    """Scores of eight heads of queries, four of which share a head of keys."""
    text = f"""func.func @main() {{
  %q = spyre.kernel.alloc : {Q}
  %k = spyre.kernel.alloc : {K}
  %s = spyre.kernel.alloc : {S}
  spyre.kernel.compute "batchmatmul" {loops} ins(%q[o * 4 + i, k] : {Q}, %k[o, n, k] : {K}) outs(%s[o * 4 + i, n] : {S})
  func.return
}}"""
    return next(op for op in parse_module(text, make_context()).walk() if isinstance(op, ComputeOp))


def test_loops_that_walk_one_dimension_count_along_it() -> None:
    """The inner loop is the first of the two, and the others stay where they are."""
    op = product("[o = 2 over 2, n = 128, i = 4, k = 64]")
    assert [(d.name, d.extent, d.split) for d in counted_along(op).data] == [
        ("i", 4, 1),
        ("n", 128, 1),
        ("o", 2, 2),
        ("k", 64, 1),
    ]
    again = product("[i = 4, n = 128, o = 2, k = 64]")
    assert counted_along(again) == again.space


def test_pieces_of_loops() -> None:
    found = {lp.name: (lp.units, lp.kept) for lp in loops_of(product("[o = 2, i = 4, n = 128, k = 64]"))}
    assert found == {"o": (2, True), "i": (4, True), "n": (2, True), "k": (1, False)}


def test_cores_along_columns_first() -> None:
    op = product("[o = 2, i = 4, n = 128, k = 64]")
    moved = columns_first(op, {"o": 2, "i": 1, "n": 2, "k": 1})
    assert moved is not None
    assert list(moved.items()) == [("n", 2), ("o", 2), ("i", 1), ("k", 1)]


def test_there_is_no_other_numbering() -> None:
    """Of one divided loop, and where a sum is divided: the cores that add up one result are neighbours."""
    op = product("[o = 2, i = 4, n = 128, k = 64]")
    assert columns_first(op, {"o": 1, "i": 1, "n": 2, "k": 1}) is None
    assert columns_first(op, {"o": 2, "i": 4, "n": 1, "k": 1}) is None
    assert columns_first(op, {"o": 2, "i": 1, "n": 2, "k": 2}) is None


def test_cores_along_the_last_divided_loop_first() -> None:
    moved = last_first({"s": 4, "h": 1, "p": 2, "n": 1})
    assert moved is not None and list(moved.items()) == [("p", 2), ("s", 4), ("h", 1), ("n", 1)]
    assert last_first({"s": 4, "h": 1}) is None
