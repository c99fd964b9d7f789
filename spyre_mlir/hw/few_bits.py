"""Integers of few bits: two of four bits in a byte of a file, and words of several on the card.

Checkpoints of 4-bit weights have a number a byte in memory. In files, tensors of bytes whose numbers all fit four bits
take half the room: the first of two is in the low bits. The file's metadata says `int4` under their names; to other
readers of safetensors they are bytes, half as many along the last dimension.

Words have integers as the digits of 32-bit integers, four of eight bits or eight of four. The first digit of a word is
the highest, with its sign; the others are stored with half their range added, so that a word less its lower digits is
a whole multiple. Kernels take a word apart with `floor` and differences.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.hw.formats import INT32

Array = NDArray[Any]
# Bits of a digit that the kernels can take out of a word.
BYTE, NIBBLE = 8, 4
DIGITS = (BYTE, NIBBLE)
# Of smaller tensors nobody counts the bytes of a file.
LEAST_ELEMENTS = 4096
_KIND = "int4"
_PIECE = 1 << 24


@dataclass(frozen=True)
class Words:
    """The last step of a transfer: the first dimension of a tensor, as many as a word has digits, becomes words.

    Attributes:
        bits: of a digit, 8 or 4.
    """

    bits: int

    @property
    def count(self) -> int:
        """Digits of a word."""
        return INT32.bits // self.bits

    @property
    def least(self) -> int:
        """The smallest digit."""
        return -(1 << self.bits - 1)

    def holds(self, low: int, high: int) -> bool:
        """Return whether all integers from one to another are digits."""
        return self.least <= low and high < -self.least

    def shape(self, given: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extents of the words of a tensor.

        Raises:
            ValueError: its first dimension does not make whole words.
        """
        if not given or given[0] != self.count:
            raise ValueError(f"words of {self.bits}-bit digits take a first dimension of {self.count}, got {given}")
        return given[1:]

    def apply(self, values: Array) -> Array:
        """Return words of digits; of truth values, whether any digit of a word has it.

        Args:
            values: [digits of a word, …], integers or truth values.

        Raises:
            OverflowError: a number needs more bits.
        """
        self.shape(values.shape)
        if values.dtype.kind == "b":
            return np.asarray(values.any(axis=0))
        if values.size and not self.holds(int(values.min()), int(values.max())):
            raise OverflowError(
                f"{int(values.min())} to {int(values.max())} are not all digits of {self.bits} bits, "
                f"{self.least} to {-self.least - 1}"
            )
        words = np.zeros(values.shape[1:], np.int64)
        for number, digit in enumerate(values):
            words <<= self.bits
            words += digit if number == 0 else digit.astype(np.int64) - self.least
        return words.astype(np.int32)


_NIBBLES = Words(NIBBLE)


def fits(value: Array) -> bool:
    """Return whether a tensor is one of bytes that is large enough, in pairs, and has no number of more bits."""
    if value.dtype != np.int8 or value.size < LEAST_ELEMENTS or value.shape[-1] % 2:
        return False
    return all(_NIBBLES.holds(int(part.min()), int(part.max())) for part in _parts(value))


def packed(value: Array) -> Iterable[Array]:
    """Make the bytes of such a tensor, in row-major order, a part at a time."""
    for part in _parts(value):
        pairs = part.view(np.uint8) & 15
        yield pairs[0::2] | pairs[1::2] << 4


def unpacked(value: Array) -> Array:
    """Return the tensor that such bytes are of."""
    pairs = np.stack((value & 15, value >> 4), axis=-1).reshape(*value.shape[:-1], -1)
    return ((pairs ^ 8).view(np.int8) - 8).astype(np.int8)


def _parts(value: Array) -> Iterable[Array]:
    flat = np.ascontiguousarray(value).reshape(-1)
    return (flat[first : first + _PIECE] for first in range(0, flat.size, _PIECE))


def metadata(names: Iterable[str]) -> dict[str, str]:
    """Return the metadata of a file in which these tensors are of four bits."""
    return dict.fromkeys(sorted(names), _KIND)


def names_in(found: Mapping[str, str] | None) -> set[str]:
    """Return the names that a file's metadata calls four bits."""
    return {name for name, kind in (found or {}).items() if kind == _KIND}


__all__ = ["BYTE", "DIGITS", "NIBBLE", "Words", "fits", "metadata", "names_in", "packed", "unpacked"]
