"""Places in sorted lists and counts per bin, against numpy's searchsorted and histogram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.composed.reductions import counting
from tests.unit.ops.evaluation import NAN, budgets, calling, check_samples, defaults, made, result, results, same, types

BORDERS = np.array([-2.0, 0.0, 0.0, 1.5, 4.0])
VALUES = np.array([[0.0, -3.0, 1.5], [9.0, 0.5, NAN]])
ROWS = np.array([[-1.0, 0.0, 2.0], [0.5, 0.5, 7.0]])
SIDES: list[tuple[dict[str, Any], Any]] = [
    ({}, "left"),
    ({"right": True}, "right"),
    ({"side": "right"}, "right"),
    ({"side": "left", "right": True}, "left"),
]


@pytest.mark.parametrize(("given", "side"), SIDES)
def test_places_in_a_sorted_list(given: dict[str, Any], side: Any) -> None:
    same(result("searchsorted.Tensor", BORDERS, VALUES, **given), np.searchsorted(BORDERS, VALUES, side))
    rows = [np.searchsorted(r, v, side) for r, v in zip(ROWS, VALUES, strict=True)]
    same(result("searchsorted.Tensor", ROWS, VALUES, **given), np.stack(rows))


@pytest.mark.parametrize("number", [0.0, 1.0, -5.0, 4, 0, NAN])
@pytest.mark.parametrize(("right", "side"), [(False, "left"), (True, "right")])
def test_the_place_of_a_number(number: float, right: bool, side: Any) -> None:
    wanted = np.searchsorted(BORDERS, number, side)
    same(result("searchsorted.Scalar", BORDERS, number, right=right), wanted)
    same(result("bucketize.Scalar", number, BORDERS, right=right), wanted)
    whole = BORDERS.astype(np.int64)
    same(result("searchsorted.Scalar", whole, number, right=right), np.searchsorted(whole, number, side))


@pytest.mark.parametrize(("right", "side"), [(False, "left"), (True, "right")])
def test_buckets(right: bool, side: Any) -> None:
    same(result("bucketize.Tensor", VALUES, BORDERS, right=right), np.searchsorted(BORDERS, VALUES, side))


def test_lists_of_another_type_are_compared_as_floats() -> None:
    borders = np.array([-2, 0, 3])
    same(result("searchsorted.Tensor", borders, VALUES), np.searchsorted(borders, VALUES))
    values = np.array([[1, -3], [4, 5]])
    same(result("bucketize.Tensor", values, BORDERS), np.searchsorted(BORDERS, values))


@pytest.mark.parametrize(
    ("borders", "values", "casts"), [(np.float16, np.float16, 0), (np.int64, np.float16, 2), (np.int64, np.float64, 1)]
)
def test_types_that_agree_are_not_converted(borders: Any, values: Any, casts: int) -> None:
    ops = made(calling("searchsorted.Tensor"), BORDERS.astype(borders), VALUES.astype(values))
    assert ops.count("_to_copy") == casts + 1  # truth values are counted as integers


@pytest.mark.parametrize(
    ("given", "element"), [({}, "i64"), ({"out_int32": True}, "i32"), ({"out_int32": False}, "i64")]
)
def test_the_type_of_places(given: dict[str, Any], element: str) -> None:
    assert types(calling("searchsorted.Tensor", **given), BORDERS, VALUES) == [((2, 3), element)]
    assert types(calling("bucketize.Tensor", **given), VALUES, BORDERS) == [((2, 3), element)]


def test_a_sorter_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="searchsorted with a sorter") as caught:
        results("searchsorted.Tensor", BORDERS, VALUES, np.arange(5))
    assert "sort the sequence" in str(caught.value)


X = np.array([[-2.0, 0.5, 1.0, 3.0], [0.25, 3.5, -2.5, 1.75]])


def histogram(x: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    return np.histogram(x, bins, (low, high))[0].astype(np.float64)


@pytest.mark.parametrize("bins", [1, 2, 3, 5])
@pytest.mark.parametrize(("low", "high"), [(-2, 3), (0, 2), (-0.5, 0.5), (-8, 8)])
def test_counts_per_bin(bins: int, low: float, high: float) -> None:
    same(result("histc", X, bins=bins, min=low, max=high), histogram(X, bins, low, high))


@pytest.mark.parametrize("bins", [1, 4, 6])
@pytest.mark.parametrize("given", [{}, {"min": 1, "max": 1}])
def test_the_range_of_the_elements_themselves(bins: int, given: dict[str, Any]) -> None:
    same(result("histc", X, bins=bins, **given), histogram(X, bins, -2.5, 3.5))


def test_there_are_a_hundred_bins() -> None:
    same(result("histc", X, max=3), histogram(X, 100, 0, 3))


def test_a_number_at_the_end_is_in_the_last_bin() -> None:
    """Though thirds, added up, are less than the whole."""
    same(result("histc", np.arange(3.0), bins=3, max=2), [1.0, 1.0, 1.0])


def test_equal_elements_stand_in_the_middle() -> None:
    same(result("histc", np.full(3, 5.0), bins=3), [0.0, 3.0, 0.0])
    same(result("histc", np.array(5.0), bins=4), [0.0, 0.0, 1.0, 0.0])


def test_what_is_not_a_number_is_in_no_bin() -> None:
    x = np.array([NAN, 0.5, -0.5])
    same(result("histc", x, bins=2, min=0, max=1), [0.0, 1.0])
    same(result("histc", x, bins=1, min=0, max=1), [1.0])


def test_one_bin_needs_no_borders() -> None:
    assert made(calling("histc", bins=1), X).count("sum.dim_IntList") == 1
    assert made(calling("histc", bins=2), X).count("sum.dim_IntList") == 2


def test_counts_have_the_type_of_the_elements() -> None:
    assert types(calling("histc", bins=3), np.zeros(4, np.float16)) == [((3,), "f16")]


def test_declarations() -> None:
    check_samples(counting.__name__)
    assert budgets(counting.__name__) == dict.fromkeys(("searchsorted", "bucketize", "histc"), (0, False))
    assert defaults(counting.__name__) == {
        ("bins", 100),
        ("min", 0),
        ("max", 0),
        ("out_int32", False),
        ("right", False),
        ("side", None),
    }
