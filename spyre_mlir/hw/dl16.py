"""DLFloat16 (SEN169_FP16), bit exact: sign, six exponent bits with bias 31, nine fraction bits.

Sources: US patent application 2019/0369960 (fields, one merged NaN/infinity, nearest rounding with ties away from
zero), IBM zDNN `DLF16_MAX` (largest finite). There are no subnormals: the lowest binade holds normal numbers.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt

BIAS = 31
FRACTION_BITS = 9
ONE = 1 << FRACTION_BITS
MAX_CODE = 0x7FFE
NAN_CODE = 0x7FFF
SIGN_BIT = 0x8000
MIN_POSITIVE = 2.0**-BIAS * (1 + 1 / ONE)


class Overflow(Enum):
    """What a finite value beyond the largest code becomes; public sources do not decide."""

    SATURATE = "saturate"
    NAN = "nan"


def encode(values: npt.ArrayLike, overflow: Overflow = Overflow.SATURATE) -> npt.NDArray[np.uint16]:
    """Round values to the nearest DLFloat16 code, ties away from zero.

    Infinities and NaN give the merged symbol 0x7FFF, with their sign. Float64 input is exact for every float the
    host uses, so the rounding happens once.
    """
    wide = np.asarray(values, dtype=np.float64)
    sign = np.where(np.signbit(wide), SIGN_BIT, 0)
    finite = np.isfinite(wide)
    magnitude = np.where(finite, np.abs(wide), 0.0)
    code = np.where(magnitude == 0, 0, _round(magnitude))
    over = code > MAX_CODE
    code = np.where(over, MAX_CODE if overflow is Overflow.SATURATE else NAN_CODE, code)
    code = np.where(finite, code, NAN_CODE)
    return (sign | code).astype(np.uint16)


def _round(magnitude: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Code of a non-negative value before the overflow rule; codes are ordered as their values are."""
    mantissa, exponent = np.frexp(magnitude)
    # frexp gives [0.5, 1); the format counts from [1, 2). Scaling by a power of two and taking the remainder are
    # exact, so a tie is seen as a tie.
    scaled = np.ldexp(mantissa, 1 + FRACTION_BITS)
    whole = np.floor(scaled)
    fraction = whole.astype(np.int64) - ONE + (scaled - whole >= 0.5)
    code = ((exponent.astype(np.int64) - 1 + BIAS) << FRACTION_BITS) + fraction
    # Below the smallest code there is nothing but zero: nearest of the two, the midpoint away from zero.
    return np.where(code < 1, np.where(magnitude >= MIN_POSITIVE / 2, 1, 0), code)


def decode(codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Value of each code; the merged NaN/infinity symbol decodes as NaN."""
    bits = np.asarray(codes, dtype=np.uint16).astype(np.int64)
    exponent = (bits >> FRACTION_BITS) & 0x3F
    fraction = bits & (ONE - 1)
    value = np.ldexp(1 + fraction / ONE, exponent - BIAS)
    value = np.where(bits & NAN_CODE == 0, 0.0, value)
    value = np.where(bits & NAN_CODE == NAN_CODE, np.nan, value)
    return np.where(bits & SIGN_BIT != 0, -value, value)


def round_trip(values: npt.ArrayLike, overflow: Overflow = Overflow.SATURATE) -> npt.NDArray[np.float64]:
    """Value each number has after being stored as DLFloat16."""
    return decode(encode(values, overflow))
