"""Floor division of integers, against Python's own."""

from __future__ import annotations

import numpy as np

from spyre_mlir.ops.native.floor_division import FLOOR_DIVIDE_INTEGERS
from tests.unit.ops.evaluation import calling, entry_of, result, same, types

X, Y = np.array([7, -7, 7, -7, 6, 0, 2**24]), np.array([2, 2, -2, -2, 3, 5, 3])


def test_quotients_are_rounded_down() -> None:
    same(result(FLOOR_DIVIDE_INTEGERS, X, Y), [int(x) // int(y) for x, y in zip(X, Y, strict=True)])


def test_a_quotient_by_zero_is_zero() -> None:
    same(result(FLOOR_DIVIDE_INTEGERS, np.array([5, 0, -5]), np.array([0, 0, 0])), [0, 0, 0])


def test_it_is_the_division_of_signed_integers() -> None:
    assert FLOOR_DIVIDE_INTEGERS == "spyre::floor_divide_integers"
    entry = entry_of(FLOOR_DIVIDE_INTEGERS)
    assert (entry.scalar, entry.opfunc, entry.ulps) == ("arith.floordivsi", None, 1)
    assert types(calling(FLOOR_DIVIDE_INTEGERS), X, Y) == [((7,), "i64")]
