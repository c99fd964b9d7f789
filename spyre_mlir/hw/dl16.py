"""DLFloat16 (SEN169_FP16), bit exact: sign, six exponent bits with bias 31, nine fraction bits.

Sources: US patent application 2019/0369960 (fields, one merged NaN/infinity, nearest rounding with ties away from
zero), IBM zDNN `DLF16_MAX` (largest finite). There are no subnormals: the lowest binade holds normal numbers.
"""

from __future__ import annotations

from enum import Enum
from functools import cache

import numpy as np
import numpy.typing as npt

from spyre_mlir.hw.formats import DL16_LARGEST, DL16_SMALLEST

BIAS = 31
FRACTION_BITS = 9
ONE = 1 << FRACTION_BITS
MAX_CODE = 0x7FFE
NAN_CODE = 0x7FFF
SIGN_BIT = 0x8000
MIN_POSITIVE = DL16_SMALLEST
LARGEST = DL16_LARGEST
# The largest code's value plus half a step: from here on, the nearest number would need a larger code.
BEYOND_LARGEST = 2.0**32 * (2 - 3 * 2.0 ** -(FRACTION_BITS + 1))

# Fields of the wide values that are rounded: IEEE 754 binary64.
_WIDE_MAGNITUDE = 2**63 - 1
_WIDE_INFINITY = 0x7FF << 52
_DROPPED_BITS = 52 - FRACTION_BITS
_HALF_STEP = 1 << (_DROPPED_BITS - 1)
_CODE_OFFSET = (1023 - BIAS) << FRACTION_BITS
_SMALLEST_ROUNDED_UP = int(np.float64(MIN_POSITIVE / 2).view(np.int64))
_SIGN_SHIFT = 63 - 15


class OverflowRule(Enum):
    """Handling of a finite value beyond the largest code; public sources do not define it."""

    SATURATE = "saturate"
    NAN = "nan"


def encode(values: npt.ArrayLike, overflow: OverflowRule = OverflowRule.SATURATE) -> npt.NDArray[np.uint16]:
    """Round values to the nearest DLFloat16 code, ties away from zero.

    Infinities and NaN give the merged symbol 0x7FFF, with their sign. Float64 input is exact for every float the
    host uses, so the rounding happens once.
    """
    bits = np.asarray(values, dtype=np.float64).view(np.int64)
    magnitude = bits & _WIDE_MAGNITUDE
    # The fields of both formats stand in the same order, so adding half a step and cutting the rest off rounds, with
    # the carry into the exponent; half a step always goes up, which is away from zero in a magnitude.
    code = ((magnitude + _HALF_STEP) >> _DROPPED_BITS) - _CODE_OFFSET
    largest = MAX_CODE if overflow is OverflowRule.SATURATE else NAN_CODE
    # Below the smallest code there is nothing but zero: nearest of the two, the midpoint away from zero.
    code = np.clip(code, magnitude >= _SMALLEST_ROUNDED_UP, largest)
    code = np.where(magnitude >= _WIDE_INFINITY, NAN_CODE, code)
    return (code | ((bits >> _SIGN_SHIFT) & SIGN_BIT)).astype(np.uint16)


def decode(codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the value of each code; the merged NaN/infinity symbol decodes as NaN."""
    return np.take(_values(), np.asarray(codes, dtype=np.uint16))


@cache
def _values() -> npt.NDArray[np.float64]:
    """Value of every code, by code."""
    bits = np.arange(2 * SIGN_BIT, dtype=np.int64)
    value = np.ldexp(1 + (bits & (ONE - 1)) / ONE, ((bits >> FRACTION_BITS) & 0x3F) - BIAS)
    value = np.where(bits & NAN_CODE == 0, 0.0, value)
    value = np.where(bits & NAN_CODE == NAN_CODE, np.nan, value)
    value = np.where(bits & SIGN_BIT != 0, -value, value)
    value.setflags(write=False)
    return value


def round_trip(values: npt.ArrayLike, overflow: OverflowRule = OverflowRule.SATURATE) -> npt.NDArray[np.float64]:
    """Return each number's value after being stored as DLFloat16."""
    return decode(encode(values, overflow))
