"""Values of KTIR programs: numpy's types for their elements, the room they take, and elements without a value."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float80Type,
    IndexType,
    IntegerType,
    TensorType,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute

from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.ktdp.values import Data, dtype_of, known, shape_of, undefined


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        (f16, np.float16),
        (f32, np.float32),
        (f64, np.float64),
        (BFloat16Type(), ml_dtypes.bfloat16),
        (i1, np.bool_),
        (i8, np.int8),
        (i16, np.int16),
        (i32, np.int32),
        (i64, np.int64),
        (IndexType(), np.int64),
    ],
)
def test_a_type_of_the_program_is_one_of_numpy(element: Attribute, kind: Any) -> None:
    assert dtype_of(element) == np.dtype(kind)
    assert dtype_of(TensorType(element, [2, 3])) == np.dtype(kind)


@pytest.mark.parametrize("element", [IntegerType(4), Float80Type()])
def test_other_elements_are_refused(element: Attribute) -> None:
    with pytest.raises(UnsupportedError, match=f"elements of {element} does not run") as caught:
        dtype_of(element)
    assert caught.value.hint == "use f16, f32 or i32"


def test_a_scalar_has_no_extents() -> None:
    assert shape_of(TensorType(f16, [2, 3])) == (2, 3)
    assert shape_of(f16) == ()


def test_a_tensor_takes_room_and_a_scalar_none() -> None:
    assert Data(np.zeros((3, 5), np.float16)).bytes == 30
    assert Data(np.zeros((3, 5), np.float16), charged=False).bytes == 0
    assert Data(np.asarray(7)).bytes == 0
    assert Data(np.asarray(7, np.int8)).number == 7


def test_an_undefined_tensor_has_its_type_and_takes_no_room() -> None:
    made = undefined(TensorType(f32, [2, 3]))
    assert (made.values.shape, made.values.dtype, made.bytes) == ((2, 3), np.float32, 0)
    assert made.defined is not None
    assert made.defined.tolist() == [[False] * 3] * 2


def test_elements_without_a_value_are_counted_when_all_are_wanted() -> None:
    values = np.arange(3)
    assert known(Data(values), TestOp(), "it") is values
    assert known(Data(values, np.ones(3, np.bool_)), TestOp(), "it") is values
    with pytest.raises(MachineFault, match="the start: 2 of 3 elements have no value") as caught:
        known(Data(values, np.asarray([False, True, False])), TestOp(), "the start")
    assert caught.value.kind == FaultKind.UNINITIALISED_READ
