"""DLFloat16 (SEN169_FP16), bit exact: sign, six exponent bits with bias 31, nine fraction bits.

Sources: US patent application 2019/0369960 (fields, one merged NaN/infinity, nearest rounding with ties away from
zero), IBM zDNN `DLF16_MAX` (largest finite). There are no subnormals: the lowest binade holds normal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any

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


@dataclass(frozen=True)
class _Fields:
    """Fields of the numbers that are rounded: IEEE 754 binary32 or binary64.

    Args:
        number: their type.
        word: an unsigned integer of as many bits.
        fraction: bits of the fraction.
    """

    number: type[np.float32 | np.float64]
    word: type[np.uint32 | np.uint64]
    fraction: int

    def bits(self, value: float) -> np.unsignedinteger[Any]:
        """Return the bits of a number."""
        return self.number(value).view(self.word)

    @cached_property
    def offset(self) -> int:
        """Difference of the exponents of 1 in the two formats, above the fraction of a code."""
        one = int(self.bits(1.0)) >> self.fraction
        return (one - BIAS) << FRACTION_BITS


_SINGLE, _DOUBLE = _Fields(np.float32, np.uint32, 23), _Fields(np.float64, np.uint64, 52)


class OverflowRule(Enum):
    """Handling of a finite value beyond the largest code; public sources do not define it."""

    SATURATE = "saturate"
    NAN = "nan"


def encode(values: npt.ArrayLike, overflow: OverflowRule = OverflowRule.SATURATE) -> npt.NDArray[np.uint16]:
    """Round values to the nearest DLFloat16 code, ties away from zero.

    Infinities and NaN give the merged symbol 0x7FFF, with their sign. Whatever is no float32 is rounded as a float64,
    which is exact for every float the host uses, so the rounding happens once.
    """
    given = np.asarray(values)
    fields = _SINGLE if given.dtype == np.float32 else _DOUBLE
    bits = given.astype(fields.number, copy=False).view(fields.word)
    magnitude = bits & ~fields.bits(-0.0)
    dropped = fields.fraction - FRACTION_BITS
    # The fields of both formats stand in the same order, so adding half a step and cutting the rest off rounds, with
    # the carry into the exponent; half a step always goes up, which is away from zero in a magnitude.
    rounded = (magnitude + fields.word(1 << (dropped - 1))) >> fields.word(dropped)
    code = rounded.astype(np.int32) - np.int32(fields.offset)
    largest = MAX_CODE if overflow is OverflowRule.SATURATE else NAN_CODE
    # Below the smallest code there is nothing but zero: nearest of the two, the midpoint away from zero.
    code = np.clip(code, magnitude >= fields.bits(MIN_POSITIVE / 2), largest)
    code = np.where(magnitude >= fields.bits(np.inf), NAN_CODE, code)
    sign = (bits >> fields.word(fields.bits(0.0).nbytes * 8 - 16)).astype(np.int32) & SIGN_BIT
    return (code | sign).astype(np.uint16)


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
