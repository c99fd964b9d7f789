"""The order of elements inside the sticks of a tensor after a change of element width.

Widening 64 DL16 elements cuts each of the eight 16-byte slices of a stick in two halves of four: the first halves fill
one FP32 stick, the second halves the next. Element 64p + 8g + 4h + e then stands in stick 2p + h at lane 4g + e.
Narrowing is the inverse. Source: torch-spyre docs, element_arrangement.md; likely.

Decision: docs/decisions/0056-float32-in-widened-order.md
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.hw.formats import DL16, FP8
from spyre_mlir.hw.spec import STICK_BYTES

STANDARD = "standard"
WIDENED = "dl16_to_fp32"
PACKED = "qfp8ch"  # eight-bit floats as narrowing two DL16 sticks leaves them

# The data path works on slices of this many bytes (torch-spyre docs, element_arrangement.md; likely).
SLICE_BYTES = 16


def block(lanes: int, arrangement: str) -> int:
    """Return the elements along the stick dimension that stay together: a stick, or the two it was widened into."""
    return max(lanes, DL16.elements_per_stick()) if arrangement == WIDENED else lanes


def widened(values: NDArray[Any], axis: int, narrow: int) -> NDArray[Any]:
    """Return elements in their order after a widening of sticks of `narrow` elements."""
    slices = STICK_BYTES // SLICE_BYTES
    return _regrouped(values, axis, (slices, 2, narrow // slices // 2))


def narrowed(values: NDArray[Any], axis: int, narrow: int) -> NDArray[Any]:
    """The inverse of `widened`."""
    slices = STICK_BYTES // SLICE_BYTES
    return _regrouped(values, axis, (2, slices, narrow // slices // 2))


def _regrouped(values: NDArray[Any], axis: int, parts: tuple[int, int, int]) -> NDArray[Any]:
    shape = (*values.shape[:axis], -1, *parts, *values.shape[axis + 1 :])
    return np.swapaxes(values.reshape(shape), axis + 1, axis + 2).reshape(values.shape)


def as_stored(values: NDArray[Any], stick: int, arrangement: str) -> NDArray[Any]:
    """Return a tensor with its elements along dimension `stick` in memory order."""
    if arrangement == PACKED:
        return narrowed(values, stick, FP8.elements_per_stick())
    return widened(values, stick, DL16.elements_per_stick()) if arrangement == WIDENED else values


def as_read(values: NDArray[Any], stick: int, arrangement: str) -> NDArray[Any]:
    """The inverse of `as_stored`."""
    if arrangement == PACKED:
        return widened(values, stick, FP8.elements_per_stick())
    return narrowed(values, stick, DL16.elements_per_stick()) if arrangement == WIDENED else values
