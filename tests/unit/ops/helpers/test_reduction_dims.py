"""Shapes after folding, positions along dimensions, and what stands in for what is not a number."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.ops.helpers import reduction_dims
from spyre_mlir.ops.helpers.reduction_dims import (
    comparable,
    count_of,
    dims_of,
    folded_shape,
    is_empty,
    or_nan,
    positions,
    reduced_dims,
    reduced_shape,
    without,
    without_nan,
)
from tests.unit.ops.evaluation import INF, NAN, a_value, made, run, same, types

X = a_value(np.zeros((2, 3, 4)))
FLOATS = np.array([1.0, NAN, -INF])


@pytest.mark.parametrize(
    ("rank", "dim", "wanted"),
    [
        (3, None, (0, 1, 2)),
        (3, (), (0, 1, 2)),
        (3, (-1, 0), (0, 2)),
        (3, (1, -2), (1,)),
        (3, (-3, 2), (0, 2)),
        (0, None, ()),
        (0, (0,), ()),
        (0, (-1,), ()),
    ],
)
def test_dimensions_are_counted_from_the_first(rank: int, dim: tuple[int, ...] | None, wanted: tuple[int, ...]) -> None:
    assert reduced_dims(rank, dim) == wanted


@pytest.mark.parametrize(("rank", "dim"), [(3, 3), (3, -4), (0, 1), (0, -2)])
def test_a_dimension_that_is_not_there_is_refused(rank: int, dim: int) -> None:
    with pytest.raises(IndexError, match=f"dimension {dim} of a tensor of rank {rank}"):
        reduced_dims(rank, (0, dim))


def test_shapes_after_folding() -> None:
    assert reduced_shape((2, 3, 4), dim=(-1, 0)) == (3,)
    assert reduced_shape((2, 3, 4), dim=(-1, 0), keepdim=True) == (1, 3, 1)
    assert reduced_shape((2, 3, 4), dtype="f32") == ()
    assert reduced_shape((2, 3), keepdim=True) == (1, 1)
    assert folded_shape(X, 1, False) == (2, 4)
    assert folded_shape(X, -1, True) == (2, 3, 1)
    assert folded_shape(X, (), False) == ()
    assert folded_shape(a_value(np.zeros(())), 0, True) == ()


def test_a_dimension_and_several() -> None:
    assert dims_of(X, -1) == (2,)
    assert dims_of(X, (2, 0)) == (0, 2)
    assert dims_of(X, None) == (0, 1, 2)
    assert (count_of(X, -1), count_of(X, (0, 1)), count_of(X, None), count_of(X, ())) == (4, 6, 24, 24)


def test_a_tensor_is_empty_if_an_extent_is_zero() -> None:
    assert is_empty(a_value(np.zeros((2, 0))))
    assert not is_empty(X)
    assert not is_empty(a_value(np.zeros(())))


def test_folded_dimensions_are_dropped_unless_kept() -> None:
    ones = np.ones((2, 1, 1))
    assert types(lambda b, x: without(b, x, (1, 2), False), ones) == [((2,), "f32")]
    assert made(lambda b, x: without(b, x, (1, 2), True), ones) == []
    assert made(lambda b, x: without(b, x, (), False), ones) == []


@pytest.mark.parametrize(("dim", "shape"), [(0, (2, 1, 1)), (1, (3, 1)), (-1, (4,))])
def test_positions_broadcast_along_their_dimension(dim: int, shape: tuple[int, ...]) -> None:
    (got,) = run(lambda b: positions(b, (2, 3, 4), dim))
    same(got, np.arange((2, 3, 4)[dim]).reshape(shape))


def test_what_is_not_a_number_gets_a_stand_in() -> None:
    same(run(lambda b, x: without_nan(x), FLOATS)[0], [1.0, INF, -INF])
    same(run(lambda b, x: without_nan(x, 7.0), FLOATS)[0], [1.0, 7.0, -INF])
    assert made(lambda b, x: without_nan(x), np.arange(3)) == []


def test_what_is_not_a_number_makes_true() -> None:
    truth = np.array([False, False, True])
    same(run(or_nan, truth, FLOATS)[0], [False, True, True])
    assert made(or_nan, truth, np.arange(3)) == []


def test_truth_values_are_compared_as_numbers() -> None:
    same(run(comparable, np.array([True, False]))[0], [1.0, 0.0])
    assert types(comparable, np.array([True])) == [((1,), "f32")]
    assert made(comparable, np.arange(3)) == []


def test_stand_ins_of_the_device() -> None:
    assert float(np.finfo(np.float16).min) == reduction_dims.MASKED
    assert reduction_dims.SHORT_BITS == {"i8": 8, "ui8": 8, "i16": 16}
