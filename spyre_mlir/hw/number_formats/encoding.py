"""Encoding of numbers in device memory: the bits of every format that the machine computes with.

What public sources leave open is said here:

* A result that is infinite or NaN is stored as the merged symbol 0x7FFF; memory holds one spelling of it, its sign is
  no information (US patent application 2019/0369960).
* Integers keep their low 32 bits; one computed from NaN is 0.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from spyre_mlir.hw.formats import DL16, FP8, FP32, INDEX, INFINITY_STAND_IN, INT32
from spyre_mlir.hw.number_formats import dl16, fp8

Stored = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

STORED_TYPES: dict[str, np.dtype[Any]] = {
    DL16.name: np.dtype(np.uint16),
    FP32.name: np.dtype(np.float32),
    INT32.name: np.dtype(np.int32),
    INDEX.name: np.dtype(np.uint32),
    FP8.name: np.dtype(ml_dtypes.float8_e4m3fn),
}
_INTEGER_RANGE = 2.0**INT32.bits


def encode(values: npt.ArrayLike, format_name: str, overflow: dl16.OverflowRule = dl16.OverflowRule.SATURATE) -> Stored:
    """Round numbers to a format of `STORED_TYPES`."""
    kind = STORED_TYPES[format_name]
    if format_name == DL16.name:
        codes = np.atleast_1d(dl16.encode(values, overflow)).reshape(np.shape(values))
        codes[codes & dl16.NAN_CODE == dl16.NAN_CODE] = dl16.NAN_CODE
        return codes
    wide = np.asarray(values, dtype=np.float64)
    if format_name == FP8.name:
        return fp8.encode(wide)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return wide.astype(kind)
    whole = np.fmod(np.where(np.isfinite(wide), wide, 0.0), _INTEGER_RANGE)
    return whole.astype(np.int64).astype(kind)


def decode(stored: Stored, format_name: str) -> Floats:
    """Return the numbers that bits encode; all formats are exact in float64."""
    return dl16.decode(stored) if format_name == DL16.name else stored.astype(np.float64)


def from_host(values: Floats, format_name: str) -> Floats:
    """Replace infinities by the largest halves: DL16 merges them with NaN, and masks contain them."""
    if format_name != DL16.name:
        return values
    return np.where(np.isinf(values), np.copysign(INFINITY_STAND_IN, values), values)
