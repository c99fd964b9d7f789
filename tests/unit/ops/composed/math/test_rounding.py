"""Rounding to whole numbers, against numpy: ties go to the even one, and zeros keep their sign."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.ops.cases import agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.composed.math.rounding"

X = np.array([-2.5, -1.5, -1.25, -0.5, -0.25, -0.0, 0.0, 0.25, 0.5, 0.75, 1.5, 2.5, 3.5, 2.0, -3.0])
OVERLOADS = {"ceil": np.ceil, "trunc": np.trunc, "fix": np.trunc, "round": np.round}


@pytest.mark.parametrize("overload", OVERLOADS)
def test_rounding_is_that_of_numpy(overload: str) -> None:
    got, wanted = result(overload, X), OVERLOADS[overload](X)
    agree(got, wanted)
    assert np.array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("overload", ["ceil", "trunc", "fix", "round"])
def test_whole_numbers_are_what_they_are(overload: str) -> None:
    agree(result(overload, np.array([-3, 0, 4])), [-3, 0, 4])


@pytest.mark.parametrize(
    ("decimals", "given", "wanted"),
    [
        (1, [1.25, -0.375, 2.0], [1.2, -0.4, 2.0]),
        (0, [2.5, -1.75], [2.0, -2.0]),
        (-1, [15.0, 25.0, -12.0, 4.0], [20.0, 20.0, -10.0, 0.0]),
        (-2, [151.0, 49.0], [200.0, 0.0]),
    ],
)
def test_decimals_say_which_multiples_are_near(decimals: int, given: list[float], wanted: list[float]) -> None:
    agree(result("round.decimals", np.array(given), decimals=decimals), wanted)


def test_the_product_with_a_power_of_ten_is_rounded_to_float32_as_in_torch() -> None:
    # 1.015 * 100 is 101.49999999999999 in double precision, and 101.5 in float32.
    agree(result("round.decimals", np.array([1.015]), decimals=2), [1.02])


def test_whole_numbers_have_no_decimals_to_round() -> None:
    agree(result("round.decimals", np.array([15, -4]), decimals=-1), [15, -4])


def test_errors_that_are_allowed() -> None:
    once, twice = (1, True), (2, True)
    wanted = {"ceil": once, "trunc": once, "round": once, "round_decimals": twice}
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
