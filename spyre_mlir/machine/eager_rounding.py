"""Eager-like rounding of results: exact numerics are wide inside one operator of the model, and no wider between two.

Float32 results are rounded to float32. Integers of 32 and 64 bits are computed as such, and start anew beyond the ends
of their type; memory that keeps them in floats has room for all of them where the host's long double is of 80 bits or
more, else for those up to 2^53.

Decision: docs/decisions/0099-exact-is-eagers-arithmetic.md
Decision: docs/decisions/0101-exact-integers.md
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.hw.formats import FORMATS, FP32

FLOAT32 = "f32"
# The widest float of the host, and what no integer of 64 bits is beyond.
WIDEST = np.dtype(np.longdouble)
MOST_INTEGER = 2**63

_LOW_BITS: dict[str, type[np.integer[Any]]] = {"i32": np.int32, "ui32": np.uint32, "i64": np.int64, "ui64": np.uint64}


def slot_type(format_name: str) -> np.dtype[Any]:
    """Return the numpy type of a slot for wide elements of a format: that of float32, as of integers, is widest."""
    return WIDEST if FORMATS[format_name].bits == FP32.bits else np.dtype(np.float64)


def as_eager(values: NDArray[Any], element: str) -> NDArray[Any]:
    """Return numbers as torch rounds the result of an operator, in their original type.

    Args:
        values: what the operator computed; integers if it is one of integers, or converts them.
        element: the element type of its result, by its MLIR name; of types that are not float32, or integers of 32
            bits and more, the numbers stay as they are.
    """
    with np.errstate(all="ignore"):
        if element == FLOAT32 and values.dtype in (np.float64, WIDEST):
            return values.astype(np.float32).astype(values.dtype)
        if element == FLOAT32 and values.dtype.kind == "i":
            return values.astype(np.float32).astype(np.float64)
        if element in _LOW_BITS and values.dtype.kind == "i":
            return values.astype(_LOW_BITS[element]).astype(np.int64)
    return values


def operands_as(values: NDArray[Any], element: str | None) -> NDArray[Any]:
    """Return the operands of an operator by the element type of its result: integers for integers, else unchanged."""
    if element not in _LOW_BITS:
        return values
    with np.errstate(all="ignore"):
        return values.astype(np.int64)
