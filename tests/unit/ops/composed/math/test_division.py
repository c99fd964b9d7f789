"""Floor division and remainders, against numpy and Python's own division."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.number_formats.dl16 import round_trip
from tests.unit.ops.cases import INF, NAN, agree, budgets, calls, check_samples, result, ulps_off

MODULE = "spyre_mlir.ops.composed.math.division"

X = np.array([7.5, -7.5, 6.0, -6.0, 0.75, -0.75, 0.0])
Y = np.array([2.0, 2.0, -2.0, -1.5, -2.0, 4.0, -3.0])
WHOLE = np.array([7, -7, 6, -6, 1, -1, 0, 7])
DIVISORS = np.array([2, 2, -4, -4, -3, 5, -3, -7])
QUOTIENTS = {"floor": np.floor_divide, "trunc": lambda x, y: np.trunc(x / y).astype(np.asarray(x).dtype)}
REMAINDERS = {"remainder": np.remainder, "fmod": np.fmod}


@pytest.mark.parametrize("mode", QUOTIENTS)
@pytest.mark.parametrize(("x", "y"), [(X, Y), (WHOLE, DIVISORS)])
def test_quotients_of_tensors(mode: str, x: Any, y: Any) -> None:
    agree(result("div.Tensor_mode", x, y, rounding_mode=mode), QUOTIENTS[mode](x, y))


@pytest.mark.parametrize("mode", QUOTIENTS)
@pytest.mark.parametrize(("x", "y"), [(X, 2.0), (X, -2.0), (X, 1.0), (X, -1.0), (X, 2), (WHOLE, 3), (WHOLE, -3)])
def test_quotients_by_a_number(mode: str, x: Any, y: Any) -> None:
    agree(result("div.Scalar_mode", x, y, rounding_mode=mode), QUOTIENTS[mode](x, y))


def test_a_quotient_without_a_mode_is_not_rounded() -> None:
    agree(result("div.Tensor_mode", np.array([1.0, -3.0]), np.array([4.0, 2.0])), [0.25, -1.5])


@pytest.mark.parametrize("name", REMAINDERS)
@pytest.mark.parametrize(("x", "y"), [(X, Y), (WHOLE, DIVISORS), (X, np.full(7, INF)), (X, np.full(7, -INF))])
def test_remainders_of_tensors(name: str, x: Any, y: Any) -> None:
    agree(result(f"{name}.Tensor", x, y), REMAINDERS[name](x, y))


@pytest.mark.parametrize("name", REMAINDERS)
@pytest.mark.parametrize(("x", "y"), [(X, 2.0), (X, -2.5), (X, 2), (WHOLE, 3), (WHOLE, -3), (X, INF), (X, -INF)])
def test_remainders_by_a_number(name: str, x: Any, y: Any) -> None:
    agree(result(f"{name}.Scalar", x, y), REMAINDERS[name](x, y))


@pytest.mark.parametrize(("x", "y"), [(7.5, Y), (-7, DIVISORS)])
def test_remainders_of_a_number(x: Any, y: Any) -> None:
    agree(result("remainder.Scalar_Tensor", x, y), np.remainder(x, y))


def test_a_quotient_rounded_up_to_a_whole_number_is_taken_back() -> None:
    # 0.1 is more than a tenth: 1 / 0.1 rounds to 10, and there are nine. Truncation leaves it at 10, as in torch.
    x, y = np.array([1.0, -1.0]), np.array([0.1, 0.1])
    for divisor in (y, 0.1):
        agree(result("div.Tensor_mode", x, divisor, rounding_mode="floor"), [9.0, -10.0])
        agree(result("div.Tensor_mode", x, divisor, rounding_mode="trunc"), [10.0, -10.0])
        agree(result("remainder.Tensor", x, divisor), np.remainder(x, y), rtol=1e-9)


def test_signs_of_quotients_and_remainders_of_zero() -> None:
    zero = np.array([0.0, -0.0])
    assert np.signbit(result("fmod.Tensor", zero, np.array([2.0, 2.0]))).tolist() == [False, True]
    assert np.signbit(result("fmod.Tensor", np.array([-4.0]), np.array([2.0]))).tolist() == [True]
    assert np.signbit(result("div.Tensor_mode", zero, 2.0, rounding_mode="trunc")).tolist()[0] is False
    assert np.signbit(result("div.Tensor_mode", zero, -2.0, rounding_mode="trunc")).tolist() == [True, False]


def test_an_infinite_number_leaves_what_it_divides() -> None:
    x = np.array([5.0, -5.0])
    agree(result("div.Scalar_mode", x, INF, rounding_mode="floor"), [0.0, -1.0])
    agree(result("div.Scalar_mode", x, -INF, rounding_mode="floor"), [-1.0, 0.0])
    agree(result("div.Scalar_mode", x, INF, rounding_mode="trunc"), [0.0, 0.0])
    agree(result("remainder.Scalar", x, NAN), [NAN, NAN])
    agree(result("remainder.Scalar", np.array([INF]), INF), [NAN])


def test_nothing_remains_of_a_division_by_zero_but_nan() -> None:
    agree(result("remainder.Tensor", np.array([3.0]), np.array([0.0])), [NAN])


@pytest.mark.parametrize(("element", "least"), [("i8", -128), ("i16", -32768)])
def test_the_least_short_integer_has_a_magnitude(element: str, least: int) -> None:
    x = np.array([least, 100])
    for y in (np.array([3, 3]), 3):
        agree(result("div.Tensor_mode", x, y, element=element, rounding_mode="trunc"), [-(-least // 3), 33])
        agree(result("fmod.Tensor", x, y, element=element), [-(-least % 3), 1])
        agree(result("remainder.Tensor", x, y, element=element), [least % 3, 1])


def test_truth_values_have_no_floor_division() -> None:
    with pytest.raises(
        UnsupportedError, match="a floor division of truth values\n  try: convert them to integers first"
    ):
        result("remainder.Tensor", np.array([True]), np.array([True]))


def test_steps_in_dl16_keep_the_error() -> None:
    x, y = (round_trip(np.linspace(*ends, 401)) for ends in ((-99.0, 98.0), (0.7, 9.3)))
    for overload, wanted in (("remainder.Tensor", np.remainder(x, y)), ("fmod.Tensor", np.fmod(x, y))):
        kept = wanted != 0
        assert ulps_off(overload, wanted[kept], x[kept], y[kept]) <= 8


def test_a_division_by_one_is_not_corrected() -> None:
    for one in (1.0, -1.0):
        assert "sub.Tensor" not in calls("div.Scalar_mode", X, one, rounding_mode="floor")
    assert "sub.Tensor" in calls("div.Scalar_mode", X, 2.0, rounding_mode="floor")


def test_errors_that_are_allowed() -> None:
    wanted = {"div_mode": (2, True), "remainder": (8, True), "fmod": (8, True)}
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
