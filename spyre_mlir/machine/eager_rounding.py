"""Eager-like rounding of results: exact numerics are wide inside one operator of the model, and no wider between two.

Float32 results are rounded to float32. Integers of 32 and 64 bits are computed as such, and start anew beyond the ends
of their type; floats become integers as on a processor of the x86 family, where eager has run. Memory that keeps
integers in floats has room for all of them where the long double of the host has 80 bits, else for those up to 2^53.

Decision: docs/decisions/0099-exact-is-eagers-arithmetic.md
Decision: docs/decisions/0101-exact-integers.md
Decision: docs/decisions/0201-what-eager-gives-for-special-values.md
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
_LONG, _SHORT = 64, 32

# How the element of an operator is spelled that makes integers of floats: ``(f32) -> i8``.
_CONVERTS = " -> "
_LOW_BITS: dict[str, type[np.integer[Any]]] = {"i32": np.int32, "ui32": np.uint32, "i64": np.int64, "ui64": np.uint64}


def slot_type(format_name: str) -> np.dtype[Any]:
    """Return the numpy type of a slot for wide elements of a format: that of float32, as of integers, is widest."""
    return WIDEST if FORMATS[format_name].bits == FP32.bits else np.dtype(np.float64)


def as_eager(values: NDArray[Any], element: str) -> NDArray[Any]:
    """Return numbers as torch rounds the result of an operator, in their original type.

    Args:
        values: what the operator computed; integers if it is one of integers, or converts them.
        element: the element type of its result, by its MLIR name; of types that are not float32, or integers of 32
            bits and more, the numbers stay as they are, and so do those of a conversion, whose operands are integers.
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
    if element is not None and _CONVERTS in element:
        return as_integers(values, element.rpartition(_CONVERTS)[2])
    if element not in _LOW_BITS:
        return values
    with np.errstate(all="ignore"):
        return values.astype(np.int64)


def as_integers(values: NDArray[Any], element: str) -> NDArray[Any]:
    """Return floats as integers of an element type: rounded towards zero, and beyond the integers as on x86.

    The processor converts to integers of 64 bits, or of 32 if these have all of the type, and then takes the low bits.
    A float that has no place in them, NaN too, becomes the least of them.

    Args:
        values: floats.
        element: an integer type, by its MLIR name.
    """
    bits = _LONG if element == "index" else int(element.lstrip("sui"))
    least = -(2.0 ** ((_SHORT if bits < _SHORT or element == "i32" else _LONG) - 1))
    made = np.where((values >= least) & (values < -least), values, least).astype(np.int64)
    if bits == _LONG:
        return made
    low = 0 if element.startswith("u") else -(2 ** (bits - 1))
    return (made - low) % 2**bits + low
