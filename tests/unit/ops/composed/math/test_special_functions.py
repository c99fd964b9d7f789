"""The error function and its relatives, against the C library and Python's normal distribution."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, erfc, exp, log, pi, sin, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from spyre_mlir.hw.number_formats.dl16 import round_trip
from spyre_mlir.ops.composed.math.special_functions import exp_of_square, normal_tail, scaled_tail
from tests.unit.ops.cases import (
    INF,
    NAN,
    agree,
    budgets,
    check_samples,
    entries_of,
    entry_of,
    exact_error,
    result,
    result_of_body,
    ulps_off,
)

MODULE = "spyre_mlir.ops.composed.math.special_functions"
NORMAL = NormalDist()
AROUND = round_trip(np.linspace(-3.97, 3.98, 600))
INSIDE = round_trip(np.concatenate([np.linspace(-0.99, 0.985, 400), [0.998, -0.998, 1e-3]]))
BETWEEN = round_trip(np.concatenate([np.linspace(0.01, 0.45, 200), np.linspace(0.55, 0.99, 200), [1e-3, 1e-4]]))
# By name: places, what torch documents, and the error that the fit states.
ON: dict[str, tuple[Any, Callable[[float], float], float]] = {
    "erf": (np.concatenate([AROUND, [1e-3, -1e-4, 5.0, -6.0, 30.0]]), erf, 2e-7),
    "erfc": (np.concatenate([AROUND, [-6.0]]), erfc, 2e-7),
    "special_erfcx": (np.linspace(-2.0, 8.98, 600), lambda x: exp(x * x) * erfc(x), 2e-7),
    "special_ndtr": (AROUND, lambda x: erfc(-x / sqrt(2)) / 2, 2e-7),
    "special_log_ndtr": (AROUND[AROUND < 3], lambda x: log(erfc(-x / sqrt(2)) / 2), 3e-7),
    "erfinv": (INSIDE, lambda x: NORMAL.inv_cdf((1 + x) / 2) / sqrt(2), 5e-7),
    "special_ndtri": (BETWEEN, NORMAL.inv_cdf, 5e-7),
    "sinc": (np.concatenate([AROUND, AROUND / 9]), lambda x: sin(pi * x) / (pi * x), 2e-7),
}


@pytest.mark.parametrize("overload", ON)
def test_functions_on_dense_grids(overload: str) -> None:
    grid, function, fit = ON[overload]
    grid = round_trip(grid)
    grid = grid[(grid != 0) & ((np.abs(grid - np.round(grid)) > 0.02) | (overload != "sinc"))]
    wanted = np.array([function(x) for x in grid])
    assert exact_error(overload, wanted, grid) <= fit
    assert ulps_off(overload, wanted, grid) <= entry_of(overload).ulps


EDGES = {
    "erf": ([INF, -INF, 0.0, NAN], [1.0, -1.0, 0.0, NAN]),
    "erfc": ([0.0, 100.0, -100.0], [1.0, 0.0, 2.0]),
    "special_erfcx": ([0.0, 1e6], [1.0, 1e-6 / sqrt(pi)]),
    "special_ndtr": ([0.0, 90.0, -90.0], [0.5, 1.0, 0.0]),
    "special_log_ndtr": ([0.0, 90.0, -40.0], [log(0.5), 0.0, -804.608442]),
    "erfinv": ([1.0, -1.0, 0.0, 2.0], [INF, -INF, 0.0, NAN]),
    "special_ndtri": ([0.0, 1.0, 0.5, 2.0], [-INF, INF, 0.0, NAN]),
    "sinc": ([0.0, 1.0, -3.0, 0.5], [1.0, 0.0, 0.0, 2 / pi]),
}


@pytest.mark.parametrize("overload", EDGES)
def test_ends_and_zeros(overload: str) -> None:
    given, wanted = EDGES[overload]
    agree(result(overload, np.array(given)), wanted, rtol=5e-7, atol=1e-15)


def test_tails_of_any_size_have_their_quantiles() -> None:
    tails = [1e-6, 1e-10, 1e-20, 1e-30, 1e-38, 1e-45]
    agree(result("special_ndtri", np.array(tails)), [NORMAL.inv_cdf(x) for x in tails], rtol=5e-7)


@pytest.mark.parametrize("factor", [1.0, -1.0, -0.5])
def test_exponentials_of_squares_are_exact_where_the_square_is_not(factor: float) -> None:
    x = round_trip(np.linspace(0.0, 3.1, 200))
    wanted = np.exp(factor * x * x)
    agree(result_of_body(lambda _, x: exp_of_square(x, factor), x), wanted, rtol=1e-12)
    got = result_of_body(lambda _, x: exp_of_square(x, factor), x, rounding=round_trip)
    assert np.abs(got / wanted - 1).max() < 2.0**-8


def test_exponentials_of_large_squares_do_not_become_nan() -> None:
    agree(result_of_body(lambda _, x: exp_of_square(x, -1.0), np.array([31.0, INF])), [0.0, 0.0], atol=1e-300)


def test_tails_of_the_normal_curve() -> None:
    x = np.array([0.0, 0.5, 1.0, 3.0])
    got = result_of_body(lambda _, x: normal_tail(x, scaled_tail(x * sqrt(0.5))), x)
    agree(got, [1 - NORMAL.cdf(v) for v in x], rtol=2e-6)


def test_errors_that_are_allowed() -> None:
    eight = ("erfc", "erfcx", "ndtr", "log_ndtr", "sinc")
    wanted = dict.fromkeys(eight, (8, True)) | dict.fromkeys(("erf", "erfinv", "ndtri"), (4, True))
    assert budgets(MODULE) == wanted
    inverse = ("erfinv", "ndtri")
    assert {e.name: e.tolerance for e in entries_of(MODULE)} == {n: 5e-7 if n in inverse else 2e-7 for n in wanted}


def test_samples_fit() -> None:
    check_samples(MODULE)
