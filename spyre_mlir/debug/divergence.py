"""Difference of two values, and the first divergence of a program: the op, its place, and the worst element."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.dialects.places import Source

Array = NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """Two values at the element where they differ most.

    Attributes:
        index: where, in the tensor.
        got: what the level computed; NaN where nothing was written.
        expected: what the level above computed.
        error: the difference over the largest expected value.
    """

    index: tuple[int, ...]
    got: float
    expected: float
    error: float


@dataclass(frozen=True)
class Divergence:
    """First divergence: the first op whose value differs from the level above.

    Attributes:
        level: where the value is wrong.
        above: what it was compared with.
        op: the op that made it.
        file: its SuperDSC file, if the level has files.
        source: the line of the model.
        difference: the worst element; None if there is no value to compare.
        reason: what is wrong if it is no value, as a fault or another order of launches.
    """

    level: str
    above: str
    op: str
    file: str | None = None
    source: Source = field(default_factory=Source)
    difference: Difference | None = None
    reason: str = ""

    def __str__(self) -> str:
        """One line for the op, one for its place, one for the values."""
        name = f"{self.file} ({self.op})" if self.file else self.op
        lines = [f"divergence: {name}, {self.level} against {self.above}"]
        if self.source:
            lines.append(f"  from {self.source}")
        if (d := self.difference) is not None:
            got = "nothing" if np.isnan(d.got) else f"{d.got:.9g}"
            lines.append(f"  at {list(d.index)}: got {got}, expected {d.expected:.9g} (error {d.error:.2e})")
        if self.reason:
            lines.append(f"  {self.reason}")
        return "\n".join(lines)


def worst_difference(got: Array, expected: Array, tolerance: float) -> Difference | None:
    """Return the worst element if it differs by more than the tolerance times the largest expected value.

    Elements that were expected to be undefined do not count; one that lacks its value differs without bound.
    """
    if expected.size == 0:
        return None
    wide, wanted = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where(wide == wanted, 0.0, np.abs(wide - wanted))
    apart = np.where(np.isnan(wanted), 0.0, np.where(np.isnan(apart), np.inf, apart))
    finite = wanted[np.isfinite(wanted)]
    largest = float(np.abs(finite).max(initial=0.0)) or 1.0
    flat = int(apart.argmax())
    if not apart.reshape(-1)[flat] > tolerance * largest:
        return None
    index = tuple(int(i) for i in np.unravel_index(flat, apart.shape))
    return Difference(index, float(wide[index]), float(wanted[index]), float(apart[index]) / largest)


__all__ = ["Difference", "Divergence", "worst_difference"]
