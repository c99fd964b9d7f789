"""Bit operations made of arithmetic, against numpy's on integers of the same width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from tests.unit.ops.cases import NAN, agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.composed.math.bitwise"

DTYPES = {"i8": np.int8, "ui8": np.uint8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
FUNCTIONS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
TRUTH = np.array([True, True, False, False]), np.array([True, False, True, False])


def numbers(element: str) -> np.ndarray[Any, Any]:
    """Integers of a type: the ends of its range, and some with mixed bits."""
    ends = np.iinfo(DTYPES[element])
    some = [ends.min, ends.max, 0, 1, 0b0101_1010, 0b0011_0011, ends.max // 3]
    return np.array(some + ([-1, -2, -77] if ends.min else [255, 254]), np.int64)


@pytest.mark.parametrize("element", ["i8", "ui8", "i16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_short_integers_bit_by_bit(name: str, element: str) -> None:
    x = numbers(element)
    got = result(f"bitwise_{name}.Tensor", x[:, None], x, element=element)
    agree(got, FUNCTIONS[name](x[:, None], x))


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("mask", [0, 1, 0b0101_1010, 0b0111_0110, -1, -2, -77])
def test_a_number_as_mask(element: str, mask: int) -> None:
    if element == "ui8":
        mask %= 256
    x = numbers(element)
    x = x[np.abs(x) < 2**62]  # sums of two numbers stay in reach
    for name, function in FUNCTIONS.items():
        wanted = function(x, mask)
        agree(result(f"bitwise_{name}.Scalar", x, mask, element=element), wanted)
        agree(result(f"bitwise_{name}.Scalar_Tensor", mask, x, element=element), wanted)


def test_two_long_tensors_are_refused() -> None:
    x = np.array([1, 2])
    with pytest.raises(UnsupportedError, match="of two i64 tensors that may be beyond 16,777,215\n  try: bound them"):
        result("bitwise_and.Tensor", x, x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_truth_values_are_chosen(name: str) -> None:
    x, y = TRUTH
    agree(result(f"bitwise_{name}.Tensor", x, y), FUNCTIONS[name](x, y))
    for number in (True, False):
        agree(result(f"bitwise_{name}.Scalar", x, number), FUNCTIONS[name](x, number))
        agree(result(f"bitwise_{name}.Scalar_Tensor", number, x), FUNCTIONS[name](x, number))


def test_every_bit_turned() -> None:
    agree(result("bitwise_not", TRUTH[0]), ~TRUTH[0])
    agree(result("bitwise_not", np.array([0, 5, -8])), [-1, -6, 7])
    agree(result("bitwise_not", np.array([0, 5, 255]), element="ui8"), [255, 250, 0])


LOGICAL = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
OPERANDS = [
    TRUTH,
    (np.array([0.0, -0.5, NAN, 0.0]), np.array([0.0, 2.0, 0.0, -1.0])),
    (np.array([0, 2, -1, 0]), np.array([True, True, False, False])),
    (np.array([0.0, 3.0]), 2.0),
    (np.array([0.0, 3.0]), 0),
    (1, np.array([0, -4])),
    (False, np.array([True, False])),
]


@pytest.mark.parametrize("name", LOGICAL)
@pytest.mark.parametrize(("x", "y"), OPERANDS)
def test_numbers_count_as_true_unless_they_are_0(name: str, x: Any, y: Any) -> None:
    agree(result(f"logical_{name}", x, y), LOGICAL[name](x, y))


@pytest.mark.parametrize("x", [TRUTH[0], np.array([0.0, -0.0, NAN, 0.5]), np.array([0, 1, -1])])
def test_not(x: Any) -> None:
    agree(result("logical_not", x), np.logical_not(x))


COUNTS = np.array([0, 1, 2, 5, 15, 16, 31])
LEFT = ["bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Tensor", "__lshift__.Scalar"]


@pytest.mark.parametrize("left", LEFT)
def test_shifts(left: str) -> None:
    right, x = left.replace("left", "right").replace("lshift", "rshift"), np.array([[1], [-3], [0b1011 << 16], [-1]])
    if left.endswith("Scalar"):
        agree(result(left, x, 3), x << 3)
        agree(result(right, x, 17), x >> 17)
    else:
        agree(result(left, x, COUNTS), x << COUNTS)
        agree(result(right, x, COUNTS), x >> COUNTS)


def test_shifts_of_a_number() -> None:
    agree(result("bitwise_left_shift.Scalar_Tensor", 3, COUNTS), 3 << COUNTS)
    agree(result("bitwise_right_shift.Scalar_Tensor", -100, COUNTS), -100 >> COUNTS)


def test_errors_that_are_allowed() -> None:
    alone = ("logical_not", "logical_and", "logical_or", "logical_xor")  # each operand is a truth value by itself
    both = [f"bitwise_{name}{kind}" for kind in ("", "_number") for name in FUNCTIONS]
    promoted = ("bitwise_not", *both, "left_shift", "right_shift")
    wanted = dict.fromkeys(alone, (1, False)) | dict.fromkeys(promoted, (1, True))
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
