"""Shape and element type of tensors, and which element types there are."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerType, MemRefType, Signedness, TensorType, f16, f32, i1, i8, i32, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.tensors import (
    ELEMENTS,
    TypedValue,
    as_tensor_type,
    element_of,
    integer_bits,
    is_unsigned,
    shape_of,
    tensor_type_of,
)

MATRIX = TensorType(f16, [3, 5])


def test_elements_are_what_torch_computes_in() -> None:
    integers = {"i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}
    assert set(ELEMENTS) - integers == {"f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"}
    assert integers <= set(ELEMENTS)
    assert all(str(element) == name for name, element in ELEMENTS.items())
    assert ELEMENTS["f32"] == f32


@pytest.mark.parametrize(
    ("element", "bits", "unsigned"),
    [
        (i1, 1, False),
        (i8, 8, False),
        (i64, 64, False),
        (IntegerType(8, Signedness.UNSIGNED), 8, True),
        (IntegerType(32, Signedness.SIGNED), 32, False),
        (f32, 0, False),
    ],
)
def test_width_and_sign_of_elements(element: Attribute, bits: int, unsigned: bool) -> None:
    assert integer_bits(element) == bits
    assert is_unsigned(element) is unsigned


def test_shape_and_element_of_values() -> None:
    for value in (TypedValue(MATRIX), TestOp(result_types=[MATRIX]).results[0]):
        assert tensor_type_of(value) is MATRIX
        assert shape_of(value) == (3, 5)
        assert element_of(value) == f16


def test_values_of_one_type_are_equal() -> None:
    assert {TypedValue(MATRIX), TypedValue(TensorType(f16, [3, 5]))} == {TypedValue(MATRIX)}


def test_a_type_that_is_no_tensor() -> None:
    assert as_tensor_type(MATRIX) is MATRIX
    assert as_tensor_type(MemRefType(i32, [3])) is None
    (value,) = TestOp(result_types=[f32]).results
    for look in (tensor_type_of, shape_of, element_of):
        with pytest.raises(VerifyException, match="expected a tensor, got f32"):
            look(value)
