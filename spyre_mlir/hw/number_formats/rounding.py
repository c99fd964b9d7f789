"""Fast in-place rounding of float32 arrays to DLFloat16 values; `spyre_mlir.hw.number_formats.dl16` defines the format.

The value of every code is a float32, so an array can hold codes by their values, and nothing is decoded. What is
rounded here equals ``dl16.decode(dl16.encode(x))`` for every float32 x; a test compares them code by code.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from spyre_mlir.hw.number_formats import dl16

Values = npt.NDArray[np.float32]


def _bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


_SIGN = np.uint32(1 << 31)
_MAGNITUDE = np.uint32((1 << 31) - 1)
_INFINITY = np.uint32(_bits(np.inf))
_DROPPED = 23 - dl16.FRACTION_BITS
_HALF = np.uint32(1 << (_DROPPED - 1))
_KEPT = np.uint32((1 << 32) - (1 << _DROPPED))
_LARGEST = np.uint32(_bits(float(dl16.decode(dl16.MAX_CODE))))
# The first magnitude that rounds to more than the largest code.
_TOO_LARGE = np.uint32(int(_LARGEST) + int(_HALF))
_SMALLEST = np.uint32(_bits(dl16.MIN_POSITIVE))
_ONE = np.uint32(1)
_SCRATCH = 1 << 16
_TOO_SMALL = np.uint32(_bits(dl16.MIN_POSITIVE / 2))


@dataclass
class Tally:
    """Counts of special cases in rounding.

    Attributes:
        overflows: finite values beyond the largest code.
        specials: infinities and NaN.
        integers: finite values beyond the integers of a format.
        largest: the largest magnitude among the overflows; whoever wants it of one operation sets it to 0 before.
    """

    overflows: int = 0
    specials: int = 0
    integers: int = 0
    largest: float = 0.0

    def beyond(self, magnitudes: npt.NDArray[Any]) -> None:
        """Count finite magnitudes beyond the largest code."""
        self.overflows += magnitudes.size
        self.largest = max(self.largest, float(magnitudes.max(initial=0.0)))


class _Scratch(threading.local):
    """Numbers of one thread between two steps; they stay in the cache, which new memory would not."""

    def __init__(self) -> None:
        self.numbers = np.empty((2, _SCRATCH), np.uint32)


_OWN = _Scratch()


def _scratch(shape: tuple[int, ...], which: int) -> npt.NDArray[np.uint32]:
    """Return one of two pieces of memory with any contents, until it is asked for again in this thread."""
    count = prod(shape)
    return np.empty(shape, np.uint32) if count > _SCRATCH else _OWN.numbers[which, :count].reshape(shape)


def round_into(
    target: Values, values: Values, overflow: dl16.OverflowRule = dl16.OverflowRule.SATURATE, tally: Tally | None = None
) -> None:
    """Write the nearest DLFloat16 value of each number, ties away from zero; infinities and NaN become NaN.

    Args:
        target: may be `values`.
        values: of the same shape.
        overflow: what becomes of finite values beyond the largest code.
        tally: counts them.
    """
    bits, out = values.view(np.uint32), target.view(np.uint32)
    if not bits.ndim:
        # One number alone as a vector: of a tensor of rank 0, numpy makes scalars that nothing can be written to.
        bits, out = bits.reshape(1), out.reshape(1)
    if not bits.size:
        return
    if not bits.flags.c_contiguous:
        # Every pass over short runs costs several over one long run.
        given, bits = bits, _scratch(bits.shape, 1)
        np.copyto(bits, given)
    magnitude = _scratch(bits.shape, 0)
    np.bitwise_and(bits, _MAGNITUDE, out=magnitude)
    largest = np.maximum.reduce(magnitude, axis=None)
    if largest < _TOO_LARGE and _without_small(magnitude):
        np.add(bits, _HALF, out=magnitude)
        if out.flags.c_contiguous:
            np.bitwise_and(magnitude, _KEPT, out=out)
        else:
            # A copy is the quickest of all passes to short runs.
            np.bitwise_and(magnitude, _KEPT, out=magnitude)
            np.copyto(out, magnitude)
        return
    magnitude = bits & _MAGNITUDE
    code = (magnitude + _HALF) & _KEPT
    np.copyto(code, _SMALLEST, where=magnitude < _SMALLEST)
    np.copyto(code, 0, where=magnitude < _TOO_SMALL)
    sign = bits & _SIGN
    if largest >= _TOO_LARGE:
        special, high = magnitude >= _INFINITY, magnitude >= _TOO_LARGE
        code[high] = _LARGEST if overflow is dl16.OverflowRule.SATURATE else _bits(np.nan)
        code[special] = _bits(np.nan)
        sign[code == _bits(np.nan)] = 0
        if tally is not None:
            tally.specials += int(special.sum())
            tally.beyond(np.abs(np.atleast_1d(values)[high & ~special]))
    np.bitwise_or(code, sign, out=out)


def _without_small(magnitude: npt.NDArray[np.uint32]) -> bool:
    """Return whether no magnitude lies between zero and the smallest code; writes over them."""
    if np.minimum.reduce(magnitude, axis=None) >= _SMALLEST:
        return True
    # Less one, zero is the largest of all and passes.
    np.subtract(magnitude, _ONE, out=magnitude)
    return bool(np.minimum.reduce(magnitude, axis=None) >= _SMALLEST - _ONE)


__all__ = ["Tally", "round_into"]
