"""Arithmetic of a few operations, against numpy and numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.ops.cases import INF, NAN, agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.composed.math.arithmetic"

X, Y = np.array([[1.0, -2.0, 3.0], [4.0, 0.5, -6.0]]), np.array([2.0, 5.0, -7.0])


def test_reversed_difference_scales_what_is_taken_off() -> None:
    agree(result("rsub.Scalar", X, 10.0), 10.0 - X)
    agree(result("rsub.Scalar", X, Y, alpha=3), Y - 3 * X)


def test_a_product_is_added_once_or_scaled() -> None:
    agree(result("addcmul", X, Y, X), X + Y * X)
    agree(result("addcmul", X, Y, X, value=-0.5), X - 0.5 * Y * X)
    whole = np.array([3, -4])
    agree(result("addcmul", whole, whole, whole, value=0.5), whole)
    agree(result("addcmul", whole, whole, whole, value=-1.5), [-6, -20])


@pytest.mark.parametrize("weight", [0.25, -0.25, 0.5, 0.75, 2.0, -1.5])
def test_the_point_between_two(weight: float) -> None:
    agree(result("lerp.Scalar", X, Y, weight=weight), X + weight * (Y - X), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("start", "end", "weight", "wanted"),
    [
        (1.0, 1e20, 0.0, 1.0),
        (1e20, 1.0, 1.0, 1.0),
        # The difference rounds to 2^54 - 4, whose half is 2^53 - 2; that and 3 make 2^53 + 1, a tie.
        (2.0**54, 3.0, 0.5, 2.0**53),
    ],
)
def test_the_point_is_counted_from_the_nearer_end(start: float, end: float, weight: float, wanted: float) -> None:
    agree(result("lerp.Scalar", np.array([start]), np.array([end]), weight=weight), [wanted], rtol=0)


def test_lengths_neither_overflow_nor_vanish() -> None:
    x, y = [3.0, -5.0, 0.0, 1e300, 1e-300, -2.0], [-4.0, 12.0, 0.0, 1e300, 0.0, 2.0]
    agree(result("hypot", np.array(x), np.array(y)), np.hypot(x, y))
    agree(result("hypot", np.array([INF, INF, NAN]), np.array([-INF, 1.0, 1.0])), [INF, INF, NAN])


def test_bounds_of_every_element_may_be_absent() -> None:
    x, low, high = np.array([1.0, 5.0, NAN, -3.0]), np.array([3.0, 3.0, 3.0, -9.0]), np.array([2.0, 4.0, 4.0, -4.0])
    agree(result("clamp.Tensor", x, low, high), [2.0, 4.0, NAN, -4.0])
    agree(result("clamp.Tensor", x, low), [3.0, 5.0, NAN, -3.0])
    agree(result("clamp.Tensor", x, None, high), [1.0, 4.0, NAN, -4.0])
    agree(result("clamp.Tensor", x), x)


LARGEST = {"f16": np.finfo(np.float16).max, "bf16": (2 - 2.0**-7) * 2.0**127, "f32": np.finfo(np.float32).max}


@pytest.mark.parametrize("element", [*LARGEST, "f64"])
def test_stand_ins_for_infinities_are_the_largest_of_the_format(element: str) -> None:
    largest = float(LARGEST.get(element, np.finfo(np.float64).max))
    x = np.array([NAN, INF, -INF, 1.5])
    agree(result("nan_to_num", x, element=element), [0.0, largest, -largest, 1.5])


def test_stand_ins_may_be_chosen() -> None:
    x = np.array([NAN, INF, -INF, 1.5])
    agree(result("nan_to_num", x, nan=4.0, posinf=5.0, neginf=6.0), [4.0, 5.0, 6.0, 1.5])
    agree(result("nan_to_num", np.array([3, -4]), nan=1.0), [3, -4])


def test_errors_that_are_allowed() -> None:
    ulps = {"rsub_scalar": 1, "addcmul": 8, "lerp": 4, "hypot": 4, "clamp_tensor": 1, "nan_to_num": 1}
    assert budgets(MODULE) == {name: (u, True) for name, u in ulps.items()}


def test_samples_fit() -> None:
    check_samples(MODULE)
