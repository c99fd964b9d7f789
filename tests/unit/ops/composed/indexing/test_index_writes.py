"""Entries of one dimension written, against numpy's assignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.composed.indexing.index_writes import index_copy_shape
from tests.unit.ops.cases import agree, budgets, check_samples, made, result

MODULE = "spyre_mlir.ops.composed.indexing.index_writes"

X = np.arange(24.0).reshape(2, 3, 4) - 7.0
KINDS = [X, X.astype(np.int64), X % 3 > 0]


def written(x: Any, at: Any, values: Any, dim: int) -> Any:
    """A copy with entries of `dim` replaced; `at` is what numpy takes for them."""
    out = x.copy()
    np.moveaxis(out, dim, 0)[at] = np.moveaxis(np.asarray(values), dim, 0)
    return out


def copied(*tensors: Any, dim: int) -> list[Any]:
    """What `index_copy` means, and what it is made of."""
    return [result("index_copy", *tensors, dim=dim), made("index_copy", *tensors, dim=dim)]


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("x", KINDS)
def test_index_copy(x: Any, count: int, dim: int) -> None:
    rng = np.random.default_rng(count)
    index = rng.integers(0, x.shape[dim], count)
    source = rng.integers(-50, 50, [count if d == dim % 3 else n for d, n in enumerate(x.shape)]).astype(x.dtype)
    for got in copied(x, index, source, dim=dim):
        agree(got, written(x, index, source, dim))


def test_of_two_entries_for_one_place_the_later_stays() -> None:
    x, index, source = np.zeros(4), np.array([2, 0, 2, 0, 2]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    for got in copied(x, index, source, dim=0):
        agree(got, [4.0, 0.0, 5.0, 0.0])


def test_one_number_is_copied() -> None:
    for got in copied(np.array(1.5), np.array([0]), np.array(-2.0), dim=0):
        agree(got, -2.0)
    for got in copied(np.array(1.5), np.array(0), np.array(-2.0), dim=0):
        agree(got, -2.0)


@pytest.mark.parametrize("index", [[4], [-1], [0, 4], [-1, 0]])
def test_a_place_outside_makes_floats_nan_and_leaves_integers(index: list[int]) -> None:
    x, source = np.zeros((2, 4)), np.ones((2, len(index)))
    assert np.isnan(made("index_copy", x, np.array(index), source, dim=1)).any(1).all()
    whole = x.astype(np.int64)
    wanted = written(whole, [0], np.ones((2, 1)), 1) if 0 in index else whole
    agree(made("index_copy", whole, np.array(index), source.astype(np.int64), dim=1), wanted)


def test_shapes_of_a_copy() -> None:
    assert index_copy_shape((2, 7, 4), (3,), (2, 3, 4), dim=1) == (2, 7, 4)
    assert index_copy_shape((2, 7, 4), (), (2, 7, 1), dim=-1) == (2, 7, 4)
    assert index_copy_shape((), (1,), (), dim=0) == ()
    with pytest.raises(ConstraintError, match=r"C1: source of shape \(2, 4\), expected \(2, 3\)"):
        index_copy_shape((2, 7), (3,), (2, 4), dim=1)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize(
    "cut",
    [
        (1, 3),
        (None, 2),
        (-3, None),
        (0, 7),
        (2, -1),
        (5, 2),
        (0, 7, 2),
        (1, 7, 3),
        (2, None, 4),
        (-6, -1, 2),
        (6, 7, 5),
    ],
)
def test_slice_scatter(dim: int, cut: tuple[int | None, ...]) -> None:
    x = np.arange(49.0).reshape(7, 7)
    start, end, *step = cut
    where = slice(*cut)
    source = -np.moveaxis(np.moveaxis(x, dim, 0)[where], 0, dim) - 0.5
    facts = {"start": start, "end": end, "dim": dim} | ({"step": step[0]} if step else {})
    agree(result("slice_scatter", x, source, **facts), written(x, where, source, dim))


def test_slice_scatter_of_a_middle_dimension_with_steps() -> None:
    source = -np.ones((2, 2, 4))
    agree(result("slice_scatter", X, source, dim=1, start=0, end=3, step=2), written(X, [0, 2], source, 1))


def test_a_slice_starts_at_the_first_dimension_and_is_whole() -> None:
    agree(result("slice_scatter", X, -X), -X)


@pytest.mark.parametrize(("dim", "index"), [(0, 1), (1, 0), (2, 3), (-1, -1), (1, -2), (-3, 0)])
def test_select_scatter(dim: int, index: int) -> None:
    source = -X.take(index, dim) * 10
    agree(
        result("select_scatter", X, source, dim=dim, index=index), written(X, [index], np.expand_dims(source, dim), dim)
    )


def test_errors_that_are_allowed() -> None:
    wanted = dict.fromkeys(("index_copy", "slice_scatter", "select_scatter"), (1, True))
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
