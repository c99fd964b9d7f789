"""Which layouts an operand may have, by hand-made cases; lanes = 64 unless said."""

from __future__ import annotations

import pytest

from spyre_mlir.hw.legality import may_write, multiples, stick_for, walks_lanes, writes_whole_sticks
from spyre_mlir.hw.sticks import UNIT, LinearExpr, StickLayout


def expr(const: int = 0, **terms: int) -> LinearExpr:
    return LinearExpr(const, tuple(terms.items()))


M, N = expr(m=1), expr(n=1)


@pytest.mark.parametrize(
    ("index", "lane", "stick"),
    [
        ((M, N), "n", 1),
        ((M, N), "m", 0),
        ((M, N), None, UNIT),  # a sparse operation
        ((M,), "n", UNIT),  # a broadcast along the lanes
        ((), "n", UNIT),
        ((expr(m=1, n=1), N), "n", None),  # a diagonal
        ((M, expr(n=2)), "n", None),  # every second element
        ((M, expr(1, n=1)), "n", None),  # starts inside a stick
        ((M, expr(64, n=1)), "n", 1),
        ((M, expr(h=64, n=1)), "n", 1),  # heads of whole sticks
        ((M, expr(h=32, n=1)), "n", None),  # heads of half sticks
        ((M, expr(h=64, n=1)), "h", None),
    ],
)
def test_the_stick_that_a_lane_asks_for(index: tuple[LinearExpr, ...], lane: str | None, stick: int | None) -> None:
    assert stick_for(index, lane, 64) == stick


def test_sticks_of_32() -> None:
    assert not walks_lanes(expr(h=32, n=1), "n", 64)
    assert walks_lanes(expr(h=32, n=1), "n", 32)


@pytest.mark.parametrize(
    ("at", "extents", "extent", "whole"),
    [
        (N, {"n": 70}, 70, True),  # partial at the end of the tensor: padding
        (N, {"n": 70}, 128, False),  # elements of another part in the last stick
        (N, {"n": 64}, 128, True),
        (expr(64, n=1), {"n": 6}, 70, True),
        (expr(h=128, n=1), {"h": 2, "n": 70}, 256, False),  # partial sticks between heads
    ],
)
def test_writing_whole_sticks(at: LinearExpr, extents: dict[str, int], extent: int, whole: bool) -> None:
    assert writes_whole_sticks(at, "n", extents, extent, 64) is whole


def test_what_may_be_written() -> None:
    extents = {"m": 5, "n": 70}
    assert may_write((M, N), (5, 70), "n", extents, 64)
    assert may_write((M, N), (5, 70), None, extents, 64)
    assert not may_write((M,), (5,), "n", {"m": 5, "n": 64}, 64)  # a result that does not depend on its lane
    assert not may_write((M, expr(3, n=1)), (5, 73), "n", extents, 64)
    assert may_write((expr(3, m=1), N), (8, 70), "n", extents, 64)


def test_what_strides_ask_of_extents() -> None:
    """Strides nest in those of what is walked outside; nothing is walked outside the outermost that is walked."""
    index = (M, expr(h=64, n=1), expr(3), expr(n=2))
    assert multiples(index, StickLayout((0, 1, 2, 3), 3, (5, 128, 4, 64))) == {1: 64, 3: 2}
    assert multiples(index, StickLayout((2, 1, 0, 3), 3, (5, 128, 4, 64))) == {3: 2}
    assert multiples(index, StickLayout((3, 2, 1, 0), 0, (64, 128, 4, 64))) == {1: 64}
    assert multiples(index[1:], StickLayout((1, 0, 2), 2, (128, 4, 64)), found=1) == {0: 64, 2: 2}
