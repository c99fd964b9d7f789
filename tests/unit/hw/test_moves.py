"""Moves of the elements of host tensors, and views by index maps, next to numpy."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw.moves import Move, RowParts, map_view, moved, writes_once
from spyre_mlir.hw.sticks import LinearExpr

ROW, COLUMN, OTHER = (LinearExpr.of(name) for name in "ijk")
X = np.arange(24).reshape(4, 6)


def folded(outer: str, inner: str, extent: int, start: int = 0) -> LinearExpr:
    """outer * extent + inner + start."""
    return LinearExpr(start, ((outer, extent), (inner, 1)))


def test_an_index_map_reads_windows() -> None:
    """Element [i, j, k] is x[j, 2 i + k + 1]; what the map does not mention repeats."""
    x = np.arange(30.0).reshape(3, 10)
    index = (LinearExpr.of("j"), LinearExpr(1, (("i", 2), ("k", 1))))
    view = map_view(x, index, {"i": 3, "j": 3, "k": 2, "n": 2}, ["i", "j", "k", "n"])
    i, j, k, _ = np.indices((3, 3, 2, 2))
    assert np.array_equal(view, x[j, 2 * i + k + 1])


def test_an_index_map_may_run_backwards() -> None:
    x = np.arange(6.0).reshape(2, 3)
    view = map_view(x, (LinearExpr(1, (("i", -1),)), LinearExpr.of("j")), {"i": 2, "j": 3}, ["j", "i"])
    assert np.array_equal(view, x[::-1].T)


@pytest.mark.parametrize(
    ("expr", "span"),
    [(LinearExpr(1, (("i", 1),)), "1 to 4 of 4"), (LinearExpr(2, (("i", -1),)), "-1 to 2 of 4")],
)
def test_an_index_map_that_leaves_the_array_is_refused(expr: LinearExpr, span: str) -> None:
    with pytest.raises(IndexError, match=f"runs over {span}"):
        map_view(np.zeros(4), (expr,), {"i": 4}, ["i"])


def test_an_index_map_reads_an_array_that_is_not_dense() -> None:
    x = np.arange(24.0).reshape(4, 6).T[1::2]
    view = map_view(x, (LinearExpr(1, (("i", 1),)), COLUMN), {"i": 2, "j": 4}, ["j", "i"])
    assert np.array_equal(view, x[1:].T)


def test_an_index_map_of_an_unknown_dimension_is_refused() -> None:
    with pytest.raises(IndexError, match="uses k, which is none of i, j"):
        map_view(X, (ROW, OTHER), {"i": 4, "j": 6, "k": 2}, ["i", "j"])


def test_loops_in_another_order_are_a_view() -> None:
    move = Move((("i", 4), ("j", 6)), (ROW, COLUMN), (COLUMN, LinearExpr(), ROW), (6, 1, 4))
    found = move.apply(X)
    assert np.array_equal(found, X.T[:, None])
    assert np.shares_memory(found, X)


def test_a_slice_is_a_view() -> None:
    move = Move((("i", 2), ("j", 3)), (LinearExpr(1, (("i", 2),)), LinearExpr(2, (("j", 1),))), (ROW, COLUMN), (2, 3))
    assert np.array_equal(move.apply(X), X[1::2, 2:5])


def test_loops_that_are_folded_are_copied() -> None:
    move = Move((("i", 4), ("j", 6)), (ROW, COLUMN), (folded("j", "i", 4),), (24,))
    assert np.array_equal(move.apply(X), X.T.reshape(-1))


def test_what_no_point_writes_is_zero() -> None:
    move = Move((("i", 4), ("j", 6)), (ROW, COLUMN), (ROW, LinearExpr(1, (("j", 1),))), (5, 8))
    assert np.array_equal(move.apply(X), np.pad(X, ((0, 1), (1, 1))))


def test_moves_follow_each_other() -> None:
    turned = Move((("i", 4), ("j", 6)), (ROW, COLUMN), (COLUMN, ROW), (6, 4))
    flat = Move((("i", 6), ("j", 4)), (ROW, COLUMN), (folded("i", "j", 4),), (24,))
    assert np.array_equal(moved(X, [turned, flat]), X.T.reshape(-1))
    assert moved(X, []) is X


def test_indices_of_rows_become_those_of_their_parts() -> None:
    """A table of rows of six columns, and of parts of two."""
    table, indices = np.arange(24).reshape(4, 6), np.array([[3, 0]], np.int32)
    named = RowParts(3).apply(indices)
    assert named.shape == RowParts(3).shape(indices.shape) == (3, 1, 2)
    assert np.array_equal(np.moveaxis(table.reshape(12, 2)[named], 0, 2).reshape(1, 2, 6), table[indices])
    known = RowParts(3).apply(np.array([[True, False]]))
    assert known.dtype == np.bool_ and known[:, 0].tolist() == [[True, False]] * 3


@pytest.mark.parametrize(
    ("target", "once"),
    [
        ((ROW, COLUMN), True),
        ((folded("i", "j", 6),), True),
        ((folded("i", "j", 5),), False),  # j goes up to 5
        ((LinearExpr(23, (("i", -6), ("j", -1))),), True),
        ((ROW,), False),  # j is not in it
        ((folded("i", "j", 1), COLUMN), False),  # as far as it is looked at: dimension by dimension
    ],
)
def test_every_point_writes_a_place_of_its_own(target: tuple[LinearExpr, ...], once: bool) -> None:
    assert writes_once(target, {"i": 4, "j": 6}) is once
    assert Move((("i", 4), ("j", 6)), (ROW, COLUMN), target, (24,) * len(target)).overwrites is not once


def test_a_loop_of_one_trip_writes_once_anyway() -> None:
    assert writes_once((ROW,), {"i": 4, "j": 1})
