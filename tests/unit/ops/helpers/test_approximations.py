"""Polynomials, signs and logarithms near 1, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.ops.helpers.approximations import (
    has_minus,
    log_of_one_plus,
    log_of_one_plus_exp,
    polynomial,
    with_sign_of,
)
from tests.unit.ops.evaluation import INF, NAN, made, run, same

X = np.array([-2.0, -0.5, 0.0, 1.5, 3.0])
SIGNS = np.array([-2.0, -0.0, 0.0, 3.0])


@pytest.mark.parametrize("coefficients", [(2.0, -3.0), (1.0, 0.0, -2.0), (0.5, 2.0, -1.0, 4.0)])
def test_coefficients_begin_with_the_constant(coefficients: tuple[float, ...]) -> None:
    (got,) = run(lambda b, x: polynomial(x, coefficients), X)
    same(got, np.polynomial.polynomial.polyval(X, coefficients))


def test_a_power_costs_two_operations() -> None:
    ops = made(lambda b, x: polynomial(x, (1.0, 2.0, 3.0)), X)
    assert ops == ["mul.Tensor", "add.Tensor"] * 2


def test_the_sign_of_another_value() -> None:
    magnitude = np.array([5.0, 6.0, 7.0, 8.0])
    same(run(lambda b, x, m: with_sign_of(x, m), SIGNS, magnitude)[0], [-5.0, 6.0, 7.0, 8.0])
    (kept,) = run(lambda b, x, m: with_sign_of(x, m, keeps_zero=True), SIGNS, magnitude)
    same(kept, [-5.0, 0.0, 0.0, 8.0])
    assert np.signbit(kept).tolist() == [True, True, False, False]


def test_a_negative_zero_has_a_minus() -> None:
    same(run(has_minus, SIGNS)[0], [True, True, False, False])
    same(run(has_minus, np.array([-1, 0, 2]))[0], [True, False, False])
    assert made(has_minus, np.array([-1])) == ["lt.Scalar"]


def test_a_logarithm_near_one_keeps_its_digits() -> None:
    x = np.array([1e-12, -1e-9, 3e-5, 0.0, -0.75, 2.0, 1e5])
    same(run(lambda b, x: log_of_one_plus(x), x)[0], np.log1p(x), rtol=1e-15, atol=0.0)


def test_a_logarithm_at_the_ends() -> None:
    ends = np.array([INF, -1.0, NAN, -2.0])
    same(run(lambda b, x: log_of_one_plus(x), ends)[0], [INF, -INF, NAN, NAN])


def test_a_logarithm_of_one_and_an_exponential_does_not_overflow() -> None:
    x = np.array([-1000.0, -40.0, -20.0, -0.5, 0.0, 1.0, 700.0, 1e6])
    same(run(lambda b, x: log_of_one_plus_exp(x), x)[0], np.logaddexp(0.0, x), rtol=1e-14, atol=0.0)
