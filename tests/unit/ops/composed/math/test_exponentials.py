"""Exponentials and logarithms: numpy's functions on dense grids, in double precision and step by step in DL16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.hw.number_formats.dl16 import round_trip
from tests.unit.ops.cases import INF, NAN, agree, budgets, check_samples, entry_of, exact_error, result, ulps_off

MODULE = "spyre_mlir.ops.composed.math.exponentials"

GRID = round_trip(np.linspace(-7.01, 7.0, 800))
SMALL = round_trip(np.array([1e-3, -1e-3, 2e-4, -2e-4, 1e-5]))
ABOVE_ONE = round_trip(np.linspace(1.02, 12.0, 400))
INSIDE = round_trip(np.linspace(-0.985, 0.98, 400))


def logit(x: Any) -> Any:
    return np.log(x / (1 - x))


def entr(x: Any) -> Any:
    return -x * np.log(x)


ON: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "exp2": (GRID * 2, np.exp2),
    "expm1": (np.concatenate([GRID, SMALL]), np.expm1),
    "log1p": (np.concatenate([ABOVE_ONE - 1, INSIDE, SMALL]), np.log1p),
    "log2": (ABOVE_ONE + 1, np.log2),
    "log10": (ABOVE_ONE + 1, np.log10),
    "cosh": (GRID, np.cosh),
    "sinh": (np.concatenate([GRID, SMALL]), np.sinh),
    "asinh": (np.concatenate([GRID, SMALL, GRID * 1000]), np.arcsinh),
    "acosh": (np.concatenate([ABOVE_ONE, ABOVE_ONE * 1300]), np.arccosh),
    "atanh": (np.concatenate([INSIDE, SMALL]), np.arctanh),
    "logit": (np.linspace(0.01, 0.99, 50), logit),
    "special_entr": (np.linspace(0.05, 4.0, 80) + 0.002, entr),
}


@pytest.mark.parametrize("overload", ON)
def test_functions_are_those_of_numpy(overload: str) -> None:
    grid, function = ON[overload]
    grid = round_trip(grid[grid != 0])
    grid = grid[function(grid) != 0]
    assert exact_error(overload, function(grid), grid) < 1e-12
    assert ulps_off(overload, function(grid), grid) <= entry_of(overload).ulps


EDGES = {
    "exp2": ([0.0, 3.0, -2.0, 1100.0, -1200.0, INF, -INF, NAN], [1.0, 8.0, 0.25, INF, 0.0, INF, 0.0, NAN]),
    "expm1": ([0.0, INF, -INF], [0.0, INF, -1.0]),
    "log1p": ([0.0, -1.0, INF, -2.0], [0.0, -INF, INF, NAN]),
    "log2": ([0.0, 0.25, -1.0], [-INF, -2.0, NAN]),
    "log10": ([0.0, 0.01, -1.0], [-INF, -2.0, NAN]),
    "cosh": ([0.0, INF, -INF], [1.0, INF, INF]),
    "sinh": ([0.0, INF, -INF], [0.0, INF, -INF]),
    "asinh": ([0.0, INF, -INF, 1e300], [0.0, INF, -INF, np.arcsinh(1e300)]),
    "acosh": ([1.0, 0.5, -2.0, INF, 1e300], [0.0, NAN, NAN, INF, np.arccosh(1e300)]),
    "atanh": ([0.0, 1.0, -1.0, 2.0], [0.0, INF, -INF, NAN]),
    "logit": ([0.0, 1.0, 0.5, 2.0], [-INF, INF, 0.0, NAN]),
    "special_entr": ([0.0, -1.0, 1.0, NAN], [0.0, -INF, 0.0, NAN]),
}


@pytest.mark.parametrize("overload", EDGES)
def test_ends_of_domains(overload: str) -> None:
    given, wanted = EDGES[overload]
    agree(result(overload, np.array(given)), wanted, rtol=1e-12)


@pytest.mark.parametrize("overload", ["log1p", "asinh", "atanh"])
def test_a_negative_zero_stays_one(overload: str) -> None:
    assert np.signbit(result(overload, np.array([-0.0, 0.0]))).tolist() == [True, False]


def test_the_logit_of_both_zeros_is_minus_infinity() -> None:
    agree(result("logit", np.array([0.0, -0.0, -0.5, 1.0])), [-INF, -INF, NAN, INF])


def test_a_limit_keeps_the_logit_finite() -> None:
    x = np.array([0.0, 0.05, 0.3, 0.97, 1.0])
    agree(result("logit", x, eps=0.1), logit(np.clip(x, 0.1, 0.9)), rtol=1e-12)


LEFT, RIGHT = GRID[::20], GRID[::-20] * 0.75 + 0.3


@pytest.mark.parametrize(("overload", "function"), [("logaddexp", np.logaddexp), ("logaddexp2", np.logaddexp2)])
def test_sums_of_exponentials(overload: str, function: np.ufunc) -> None:
    agree(result(overload, LEFT, RIGHT), function(LEFT, RIGHT), rtol=1e-12)
    far = np.array([INF, -INF, 800.0, INF, -900.0]), np.array([INF, -INF, 1.0, -INF, -900.0])
    agree(result(overload, *far), function(*far), rtol=1e-12)


def test_sums_of_exponentials_in_dl16() -> None:
    x, y = round_trip(np.abs(LEFT) + 0.5), round_trip(np.abs(RIGHT) + 0.5)
    assert ulps_off("logaddexp", np.logaddexp(x, y), x, y) <= 4
    assert ulps_off("logaddexp2", np.logaddexp2(x, y), x, y) <= 8


PRODUCTS = {"xlogy": np.log, "special_xlog1py": np.log1p}
SPELLINGS = {
    "xlogy": ("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other"),
    "special_xlog1py": ("special_xlog1py", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_a_logarithm(name: str) -> None:
    both, first, second = SPELLINGS[name]
    x, y = np.array([2.0, -3.0, 0.5]), np.array([0.25, 4.0, 0.75])
    log = PRODUCTS[name]
    agree(result(both, x, y), x * log(y))
    agree(result(first, 2.0, y), 2.0 * log(y))
    agree(result(second, x, 4.0), x * log(4.0))


@pytest.mark.parametrize("name", PRODUCTS)
def test_zero_times_a_logarithm_is_zero_unless_that_is_of_nan(name: str) -> None:
    y = np.array([NAN, INF, 0.0, -1.0])
    agree(result(SPELLINGS[name][0], np.zeros(4), y), [NAN, 0.0, 0.0, 0.0])


def test_errors_that_are_allowed() -> None:
    names = "exp2 expm1 log1p log2 log10 logaddexp cosh sinh asinh acosh atanh logit xlogy xlog1py entr"
    wanted = dict.fromkeys(names.split(), (4, True)) | {"logaddexp2": (8, True)}
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
