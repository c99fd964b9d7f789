"""SSA values of a KTIR program: numpy arrays in the program's element types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.tensors import as_tensor_type
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, fault

Array = NDArray[Any]
Mask = NDArray[np.bool_]

_FLOATS: dict[type[Attribute], np.dtype[Any]] = {
    Float16Type: np.dtype(np.float16),
    Float32Type: np.dtype(np.float32),
    Float64Type: np.dtype(np.float64),
    BFloat16Type: np.dtype(ml_dtypes.bfloat16),
}
_INTEGERS = {1: np.dtype(np.bool_), **{bits: np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)}}


def dtype_of(type_: Attribute) -> np.dtype[Any]:
    """Return the numpy type of a scalar type, or of the elements of a tensor.

    Raises:
        UnsupportedError: the interpreter has no such numbers.
    """
    tensor = as_tensor_type(type_)
    element = type_ if tensor is None else tensor.get_element_type()
    match element:
        case IntegerType(IntAttr(bits), _):
            found = _INTEGERS.get(int(bits))
        case IndexType():
            found = np.dtype(np.int64)
        case _:
            found = _FLOATS.get(type(element))
    if found is None:
        raise UnsupportedError(f"KTIR with elements of {element} does not run here yet", hint="use f16, f32 or i32")
    return found


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """Return the extents of a tensor type; none for a scalar."""
    return tuple(type_.get_shape()) if isinstance(type_, TensorType) else ()


@dataclass(frozen=True, eq=False)
class Data:
    """A tensor or a scalar.

    Attributes:
        values: the elements; anything where undefined.
        defined: which elements have a value; None when all have.
        charged: whether it takes room in the scratchpad.
    """

    values: Array
    defined: Mask | None = None
    charged: bool = True

    @property
    def bytes(self) -> int:
        """Bytes it takes in the scratchpad."""
        return self.values.size * self.values.itemsize if self.charged and self.values.ndim else 0

    @property
    def number(self) -> int:
        """The value of an integer scalar."""
        return int(self.values)


def undefined(type_: Attribute) -> Data:
    """Return a tensor without any defined element; it takes no room before it is written."""
    shape = shape_of(type_)
    blank = np.broadcast_to(np.zeros((), dtype_of(type_)), shape)
    return Data(blank, np.broadcast_to(np.zeros((), np.bool_), shape), charged=False)


def known(data: Data, op: Operation, name: str) -> Array:
    """Return all elements.

    Raises:
        MachineFault: one of them has no value.
    """
    if data.defined is not None and not data.defined.all():
        missing = int(data.defined.size - np.count_nonzero(data.defined))
        raise fault(
            FaultKind.UNINITIALISED_READ, f"{name}: {missing} of {data.defined.size} elements have no value", op
        )
    return data.values
