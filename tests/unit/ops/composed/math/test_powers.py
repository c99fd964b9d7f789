"""Powers against numpy, and the steps they are made of: products for whole exponents, roots by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.number_formats.dl16 import round_trip
from tests.unit.ops.cases import INF, NAN, agree, budgets, calls, check_samples, result, ulps_off

MODULE = "spyre_mlir.ops.composed.math.powers"

POSITIVE = round_trip(np.linspace(0.3, 3.0, 40))
SIGNED = np.array([-2.0, -1.0, -0.5, 0.5, 3.0])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 7, 12, 64, -1, -2, -5])
def test_whole_exponents(exponent: int) -> None:
    agree(result("pow.Tensor_Scalar", SIGNED, exponent=exponent), SIGNED**exponent)


@pytest.mark.parametrize("exponent", [0.5, -0.5, 0.25, 1.5, 2.5, -1.75, 3.3])
def test_fractions(exponent: float) -> None:
    agree(result("pow.Tensor_Scalar", POSITIVE, exponent=exponent), POSITIVE**exponent)
    at_zero = 0.0 if exponent > 0 else INF
    agree(result("pow.Tensor_Scalar", np.array([0.0, -2.0]), exponent=exponent), [at_zero, NAN])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 6])
def test_integers_stay_whole(exponent: int) -> None:
    x = np.array([-3, 0, 2])
    agree(result("pow.Tensor_Scalar", x, exponent=exponent), x**exponent)


@pytest.mark.parametrize(
    ("exponent", "steps"),
    [
        (0.5, ["sqrt"]),
        (-0.5, ["rsqrt"]),
        (-1, ["reciprocal"]),
        (1, ["clone"]),
        (2, ["mul.Tensor"]),
        (5, ["mul.Tensor"] * 3),  # two squarings and a product
        (8, ["mul.Tensor"] * 3),
        (1.5, ["sqrt", "mul.Tensor"]),
        (-2.5, ["mul.Tensor", "sqrt", "mul.Tensor", "reciprocal"]),
    ],
)
def test_steps(exponent: float, steps: list[str]) -> None:
    assert calls("pow.Tensor_Scalar", POSITIVE, exponent=exponent) == ["pow.Tensor_Scalar", *steps]


@pytest.mark.parametrize("exponent", [65, -65, 64.5, INF, -INF])
def test_large_exponents_are_refused(exponent: float) -> None:
    with pytest.raises(UnsupportedError, match=f"a power with exponent {exponent}\n  try: exponents up to 64 are"):
        result("pow.Tensor_Scalar", POSITIVE, exponent=exponent)


@pytest.mark.parametrize("exponent", [-1, -2])
def test_integers_have_no_negative_powers(exponent: int) -> None:
    with pytest.raises(UnsupportedError, match="an integer to a negative power\n  try: convert it to float first"):
        result("pow.Tensor_Scalar", np.array([2]), exponent=exponent)


BASES = np.array([0.0, -0.0, 0.0, -2.0, -2.0, -2.0, -8.0, 1.0, NAN, 2.0, 0.3, 5.0, -1.0, 0.0])
EXPONENTS = np.array([0.0, 2.0, -1.0, 3.0, 2.0, 0.5, -3.0, NAN, 0.0, -1.5, 2.5, 1.0, 5.0, 0.5])


def test_tensors_to_the_power_of_tensors() -> None:
    with np.errstate(all="ignore"):
        agree(result("pow.Tensor_Tensor", BASES, EXPONENTS), BASES**EXPONENTS)


@pytest.mark.parametrize("base", [2.0, 0.5, 10, 1.0, 1, 0.0, -2.0, -3, INF])
def test_a_number_to_the_power_of_a_tensor(base: Any) -> None:
    y = np.array([[0.0, 1.0, 2.0], [-1.0, -3.0, 0.5]])
    with np.errstate(all="ignore"):
        agree(result("pow.Scalar", base, y), float(base) ** y)


def test_one_is_one_to_the_power_of_nan() -> None:
    agree(result("pow.Scalar", 1.0, np.array([NAN, 2.0])), [1.0, 1.0])


def test_zero_to_the_power_of_nan_is_nan() -> None:
    agree(result("pow.Tensor_Tensor", np.array([0.0, 0.0, 1.0, NAN]), np.array([NAN, 2.0, NAN, 0.0])), [NAN, 0, 1, 1])
    agree(result("pow.Scalar", 0.0, np.array([NAN, 2.0])), [NAN, 0.0])


def test_minus_infinity_is_the_largest_magnitude() -> None:
    for exponent, wanted in ((1.75, INF), (0.3, INF), (-1.25, 0.0)):
        agree(result("pow.Tensor_Scalar", np.array([-INF, INF]), exponent=exponent), [wanted, wanted])
    base = np.array([-INF, -INF, -INF, -INF, -2.0])
    agree(result("pow.Tensor_Tensor", base, np.array([1.5, -1.5, 3.0, INF, 1.5])), [INF, 0.0, -INF, INF, NAN])


def test_minus_one_to_an_infinite_power_is_one() -> None:
    base = np.array([-1.0, -1.0, 1.0, -2.0, 0.5])
    agree(result("pow.Tensor_Tensor", base, np.array([INF, -INF, INF, -INF, INF])), [1.0, 1.0, 1.0, 0.0, 0.0])


def test_an_exponent_that_is_a_tensor_of_integers_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="an integer to the power of a tensor\n  try: convert one of them"):
        result("pow.Tensor_Tensor", np.array([2]), np.array([3]))


def test_steps_in_dl16_keep_the_error() -> None:
    for exponent in (3, 0.3, -1.7, 2.5):
        assert ulps_off("pow.Tensor_Scalar", POSITIVE**exponent, POSITIVE, exponent=exponent) <= 8
    small = round_trip(np.linspace(-2.0, 2.0, 40))
    assert ulps_off("pow.Tensor_Tensor", POSITIVE**small, POSITIVE, small) <= 16


def test_errors_that_are_allowed() -> None:
    assert budgets(MODULE) == {"pow": (8, True), "pow_tensor": (16, True)}


def test_samples_fit() -> None:
    check_samples(MODULE)
