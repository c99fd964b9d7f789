"""Trigonometric functions against numpy on dense grids: fits within what they state, and DL16 within its ulps."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spyre_mlir.hw.number_formats.dl16 import round_trip
from spyre_mlir.ops.composed.math.trigonometry import PI_PARTS, is_odd
from tests.unit.ops.cases import (
    INF,
    NAN,
    agree,
    budgets,
    check_samples,
    entries_of,
    exact_error,
    made,
    result,
    result_of_body,
    ulps_off,
)

MODULE = "spyre_mlir.ops.composed.math.trigonometry"
TURNS = round_trip(np.linspace(-20.02, 20.0, 1500))
INSIDE = round_trip(np.linspace(-1.0, 0.9995, 700))
WIDE = round_trip(np.concatenate([np.linspace(-9.01, 9.0, 500), np.linspace(20.0, 900.0, 50)]))
Function = Callable[[Any], Any]
ON: dict[str, tuple[Any, Function]] = {
    "sin": (TURNS, np.sin),
    "cos": (TURNS, np.cos),
    "tan": (TURNS, np.tan),
    "asin": (INSIDE, np.arcsin),
    "acos": (INSIDE, np.arccos),
    "atan": (WIDE, np.arctan),
}
FIT = 2e-7  # the relative error that this module states


@pytest.mark.parametrize("overload", ON)
def test_functions_are_those_of_numpy(overload: str) -> None:
    grid, function = ON[overload]
    grid = grid[np.abs(grid) > 1e-3]
    assert exact_error(overload, function(grid), grid) < FIT
    assert ulps_off(overload, function(grid), grid) <= 4
    agree(result(overload, grid), function(grid), rtol=FIT)


def test_fits_are_in_double_precision_where_torch_is() -> None:
    x = np.array([0.3, -2.0, 500.0])
    agree(result("sin", x), np.sin(x), rtol=1e-15)
    agree(result("cos", x), np.cos(x), rtol=1e-15)


def test_the_cosine_of_zero_is_one_whatever_rounds_it() -> None:
    """In half precision torch's float32 is not rounded to float32 in between, and `cos(x).ceil()` would be 2."""
    assert made("cos", np.array([0.0, -0.0])).tolist() == [1.0, 1.0]
    assert float(np.abs(made("cos", np.linspace(-1e-3, 1e-3, 2001))).max()) <= 1.0


def test_parts_of_pi_have_few_bits_and_add_up() -> None:
    first, second, third = PI_PARTS
    assert (first, second * 64) == (3, 9)
    assert first + second + third == np.pi
    pi_less_both = Fraction(314159265358979323846264338327950288, 10**35) - Fraction(first) - Fraction(second)
    assert abs(Fraction(third) - pi_less_both) < Fraction(1, 2**63)


def test_many_turns_are_taken_off_without_loss() -> None:
    x = np.array([300.0, 1e6, -2e6])
    for name, function in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan)):
        agree(made(name, x), function(x), rtol=1e-6)


@pytest.mark.parametrize("overload", ["sin", "cos"])
def test_angles_that_are_not_known_stay_between_the_ends(overload: str) -> None:
    got = made(overload, round_trip(np.array([3e5, -7e6, 4e8])), rounding=round_trip)
    assert (np.abs(got) <= 1.0).all()


EDGES = {
    "asin": ([1.0, -1.0, 0.5, 2.0], [np.pi / 2, -np.pi / 2, np.pi / 6, NAN]),
    "acos": ([1.0, -1.0, 0.5, -0.5, 0.0, 2.0], [0.0, np.pi, np.pi / 3, np.pi * 2 / 3, np.pi / 2, NAN]),
    "atan": ([1.0, -1.0, INF, -INF], [np.pi / 4, -np.pi / 4, np.pi / 2, -np.pi / 2]),
    "angle": ([2.0, 0.0, -0.0, -3.0, NAN, -INF], [0.0, 0.0, 0.0, np.pi, NAN, np.pi]),
}


@pytest.mark.parametrize("overload", EDGES)
def test_known_angles(overload: str) -> None:
    given, wanted = EDGES[overload]
    agree(result(overload, np.array(given)), wanted, rtol=FIT)


@pytest.mark.parametrize("overload", ["asin", "atan"])
def test_a_negative_zero_stays_one(overload: str) -> None:
    assert np.signbit(result(overload, np.array([-0.0, 0.0]))).tolist() == [True, False]


def test_whole_numbers_are_odd_or_even() -> None:
    count = np.array([-3.0, -2.0, 0.0, 1.0, 4.0, 7.0])
    agree(result_of_body(lambda _, x: is_odd(x), count), [True, False, False, True, False, True])


def test_angles_of_points_in_every_direction() -> None:
    y, x = (a.ravel() for a in np.meshgrid([-3.0, -0.5, -0.0, 0.0, 0.5, 3.0], [-2.0, -0.5, -0.0, 0.0, 0.5, 2.0]))
    got = result("atan2", y, x)
    agree(got, np.arctan2(y, x), rtol=FIT)
    assert np.array_equal(np.signbit(got), np.signbit(np.arctan2(y, x)))
    far = np.array([INF, -INF, 1.0, -INF]), np.array([INF, -INF, -INF, 2.0])
    agree(result("atan2", *far), np.arctan2(*far), rtol=FIT)


def test_errors_that_are_allowed() -> None:
    wanted = dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "atan2"), (4, True)) | {"angle": (1, True)}
    assert budgets(MODULE) == wanted
    assert {e.name: e.tolerance for e in entries_of(MODULE)} == {n: FIT * (n != "angle") for n in wanted}


def test_samples_fit() -> None:
    check_samples(MODULE)
