"""Numbers among tensors: made into tensors, multiplied at once, and asked for."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.ops.helpers.numbers import known, number, scaled
from tests.unit.ops.evaluation import a_value, run, same, types

X = np.array([[1.0, -2.0], [3.0, 0.5]])


def test_a_number_becomes_a_tensor_of_the_same_type() -> None:
    same(run(lambda b, x: number(b, 2.5, x), X)[0], 2.5)
    assert types(lambda b, x: number(b, 2, x), np.zeros(3, np.float16)) == [((), "f16")]


def test_a_tensor_is_scaled_by_an_operation() -> None:
    same(run(lambda b, x: scaled(x, -3.0), X)[0], X * -3.0)


def test_a_number_is_scaled_at_once() -> None:
    assert scaled(a_value(2.5), 3) == 7.5
    assert scaled(a_value(0), 3) == 0


def test_a_known_number() -> None:
    assert known(a_value(2.5)) == 2.5
    assert known(a_value(0)) == 0


def test_a_tensor_is_no_known_number() -> None:
    with pytest.raises(TypeError, match=r"data=2.*Float32Type.* is a tensor, where a number is wanted"):
        known(a_value(X))
