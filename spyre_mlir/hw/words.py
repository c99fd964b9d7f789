"""Words: integers of few bits as the digits of 32-bit integers, four of eight bits or eight of four.

The first digit of a word is the highest, with its sign; the others are stored with half their range added, so that a
word less its lower digits is a whole multiple. Kernels take a word apart with `floor` and differences.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.hw.formats import INT32

Array = NDArray[Any]
# Bits of a digit that the kernels can take out of a word.
BYTE, NIBBLE = 8, 4
DIGITS = (BYTE, NIBBLE)


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


__all__ = ["BYTE", "DIGITS", "NIBBLE", "Words"]
