"""Shape and element type of host tensors, in one place for every level."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException


def as_tensor_type(attribute: Attribute) -> TensorType[Attribute] | None:
    """The type as a ranked tensor, or None if it is none."""
    return cast(TensorType[Attribute], attribute) if isinstance(attribute, TensorType) else None


def tensor_type_of(value: SSAValue) -> TensorType[Attribute]:
    """Type of a tensor value.

    Raises:
        VerifyException: it is no ranked tensor.
    """
    found = as_tensor_type(value.type)
    if found is None:
        raise VerifyException(f"expected a tensor, got {value.type}")
    return found


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Shape of a tensor value.

    Raises:
        VerifyException: it is no ranked tensor.
    """
    return tensor_type_of(value).get_shape()


def element_of(value: SSAValue) -> Attribute:
    """Element type of a tensor value.

    Raises:
        VerifyException: it is no ranked tensor.
    """
    return tensor_type_of(value).get_element_type()
