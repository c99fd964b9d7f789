"""Signs, choices and kinds of numbers, zeros of both signs and NaN among them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.ops.cases import INF, NAN, agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.composed.math.comparisons"

X = np.array([-2.5, -0.0, 0.0, 3.0, NAN, INF, -INF])
TABLE = {
    "sign": [-1.0, 0.0, 0.0, 1.0, 0.0, 1.0, -1.0],
    "sgn": [-1.0, 0.0, 0.0, 1.0, 0.0, 1.0, -1.0],
    "signbit": [True, True, False, False, False, False, True],
    "isnan": [False, False, False, False, True, False, False],
    "isinf": [False, False, False, False, False, True, True],
    "isfinite": [True, True, True, True, False, False, False],
}
OF_WHOLE = {
    "sign": [-1, 0, 1],
    "sgn": [-1, 0, 1],
    "signbit": [True, False, False],
    "isnan": [False, False, False],
    "isinf": [False, False, False],
    "isfinite": [True, True, True],
}
OF_TRUTH = {
    "sign": [True, False],
    "signbit": [False, False],
    "isnan": [False, False],
    "isinf": [False, False],
    "isfinite": [True, True],
}


@pytest.mark.parametrize("overload", TABLE)
def test_numbers(overload: str) -> None:
    agree(result(overload, X), TABLE[overload])


@pytest.mark.parametrize("overload", OF_WHOLE)
def test_whole_numbers(overload: str) -> None:
    agree(result(overload, np.array([-3, 0, 2])), OF_WHOLE[overload])


@pytest.mark.parametrize("overload", OF_TRUTH)
def test_truth_values(overload: str) -> None:
    agree(result(overload, np.array([True, False])), OF_TRUTH[overload])


def test_signs_are_copied_from_zeros_too() -> None:
    x, signs = np.array([1.5, -1.5, 1.5, -1.5, 2.0]), np.array([-0.0, 0.0, -3.0, 3.0, -INF])
    agree(result("copysign.Tensor", x, signs), [-1.5, 1.5, -1.5, 1.5, -2.0])
    agree(result("copysign.Scalar", x, -0.0), -np.abs(x))
    agree(result("copysign.Scalar", x, 0.0), np.abs(x))
    agree(result("copysign.Scalar", x, -2), -np.abs(x))


def test_the_step_has_a_value_of_its_own_at_zero() -> None:
    agree(result("heaviside", X, np.array([7.0])), [0.0, 7.0, 7.0, 1.0, 0.0, 1.0, 0.0])
    agree(result("heaviside", np.array([1.0, -1.0, 0.0]), np.full(3, NAN)), [1.0, 0.0, NAN])
    agree(result("heaviside", np.array([2, 0, -2]), np.array([5, 6, 7])), [1, 6, 0])
    truth = np.array([True, True, False, False])
    agree(result("heaviside", truth, np.array([True, False, True, False])), [True, True, True, False])


@pytest.mark.parametrize(("overload", "chosen"), [("fmax", np.fmax), ("fmin", np.fmin)])
def test_what_is_no_number_is_passed_over(overload: str, chosen: np.ufunc) -> None:
    x, y = np.array([1.0, NAN, 4.0, NAN, -INF]), np.array([2.0, 3.0, NAN, NAN, 5.0])
    agree(result(overload, x, y), chosen(x, y))
    agree(result(overload, np.array([1, 5]), np.array([2, -5])), chosen([1, 5], [2, -5]))


def test_errors_that_are_allowed() -> None:
    kinds = ("signbit", "isnan", "isinf", "isfinite")  # these ask about one operand, and torch promotes nothing
    promoted = ("sign", "copysign", "heaviside", "fmax", "fmin")
    wanted = dict.fromkeys(kinds, (1, False)) | dict.fromkeys(promoted, (1, True))
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
