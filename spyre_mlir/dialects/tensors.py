"""Shape and element type of host tensors, in one place for every level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

_UNSIGNED = [IntegerType(width, Signedness.UNSIGNED) for width in (8, 16, 32, 64)]
_FLOAT8 = [Float8E4M3FNType(), Float8E5M2Type(), Float8E4M3FNUZType(), Float8E5M2FNUZType()]
_ELEMENTS: tuple[Attribute, ...] = (i1, i8, i16, i32, i64, *_UNSIGNED, f16, bf16, f32, f64, *_FLOAT8)
# Element types of tensors by their MLIR names.
ELEMENTS: dict[str, Attribute] = {str(e): e for e in _ELEMENTS}


def integer_bits(element: Attribute) -> int:
    """Return the width of an integer type, 1 for booleans; 0 for other types."""
    match element:
        case IntegerType():
            return element.width.data
        case _:
            return 0


def is_unsigned(element: Attribute) -> bool:
    """Return whether a type is an unsigned integer type."""
    match element:
        case IntegerType():
            return element.signedness.data is Signedness.UNSIGNED
        case _:
            return False


@dataclass(frozen=True)
class TypedValue:
    """A value outside a program that has a type, like an SSA value."""

    type: TensorType[Attribute]


def as_tensor_type(attribute: Attribute) -> TensorType[Attribute] | None:
    """Return the type as a ranked tensor, or None if it is none."""
    return cast("TensorType[Attribute]", attribute) if isinstance(attribute, TensorType) else None


def tensor_type_of(value: SSAValue | TypedValue) -> TensorType[Attribute]:
    """Return the type of a tensor value.

    Raises:
        VerifyException: it is no ranked tensor.
    """
    found = as_tensor_type(value.type)
    if found is None:
        raise VerifyException(f"expected a tensor, got {value.type}")
    return found


def shape_of(value: SSAValue | TypedValue) -> tuple[int, ...]:
    """Return the shape of a tensor value.

    Raises:
        VerifyException: it is no ranked tensor.
    """
    return tensor_type_of(value).get_shape()


def element_of(value: SSAValue | TypedValue) -> Attribute:
    """Return the element type of a tensor value.

    Raises:
        VerifyException: it is no ranked tensor.
    """
    return tensor_type_of(value).get_element_type()
