"""Tensors made from numbers alone, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.native import creation
from spyre_mlir.ops.native.creation import arange_shape, full_shape
from tests.unit.ops.evaluation import calling, check_samples, defaults, result, results, same, types


@pytest.mark.parametrize(
    ("start", "end", "step"), [(0, 5, 1), (2, -9, -3), (-1, 6, 2), (0, 1, 0.3), (1, 4, 1.5), (3, 3, 1), (5, 2, 1)]
)
def test_ranges(start: float, end: float, step: float) -> None:
    wanted = np.arange(start, end, step)
    same(result("arange.start_step", start=start, end=end, step=step, dtype="f32"), wanted.astype(np.float64))
    assert arange_shape(start=start, end=end, step=step) == wanted.shape


def test_a_range_from_zero_in_steps_of_one() -> None:
    same(result("arange.start_step", end=3), [0.0, 1.0, 2.0])
    assert arange_shape(end=3) == (3,)


def test_a_range_without_steps_is_refused() -> None:
    with pytest.raises(ConstraintError, match="C1: step is 0"):
        results("arange.start_step", end=3, step=0)


def test_one_number_everywhere() -> None:
    same(result("full", size=(2, 3), fill_value=-1.5), np.full((2, 3), -1.5))
    same(result("full", size=(), fill_value=2, dtype="i64"), 2)
    assert full_shape(size=(2, 0, 3), fill_value=1) == (2, 0, 3)


@pytest.mark.parametrize("dtype", ["f16", "i64", "i1"])
def test_the_element_type_is_what_is_asked_for(dtype: str) -> None:
    assert types(calling("full", size=(2,), fill_value=1, dtype=dtype)) == [((2,), dtype)]
    assert types(calling("arange.start_step", end=2, dtype=dtype)) == [((2,), dtype)]


def test_declarations() -> None:
    check_samples(creation.__name__)
    assert defaults(creation.__name__) == {("start", 0), ("step", 1), ("dtype", None)}
