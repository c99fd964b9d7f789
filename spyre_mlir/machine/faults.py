"""The kinds of misbehaviour the machine reports, and how a report is worded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spyre_mlir.errors import MachineFault


class FaultKind(StrEnum):
    """Every fault the machine can raise; the value is the stable word users see."""

    UNINITIALISED_READ = "uninitialised-read"
    OUT_OF_BOUNDS = "out-of-bounds"
    MISALIGNED = "misaligned"
    WRONG_FORMAT = "wrong-format"
    DOUBLE_WRITE = "double-write"
    READ_WRITE_RACE = "read-write-race"
    COHORT_MISMATCH = "cohort-mismatch"
    INDEX_OUT_OF_RANGE = "index-out-of-range"
    SPAN = "span"
    UNBOUND_SYMBOL = "unbound-symbol"
    LX_OVERFLOW = "lx-overflow"
    DEADLOCK = "deadlock"
    DIVISION_BY_ZERO = "division-by-zero"
    LOOP_STEP = "loop-step"
    TRIP_COUNT = "trip-count"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a fault happened; what is not known stays None.

    Args:
        op: the operation, as ``2:batchmatmul``.
        tensor: the operand, as ``Tensor1``.
        core: the core that did it.
        low: first byte touched.
        high: one past the last byte touched.
    """

    op: str | None = None
    tensor: str | None = None
    core: int | None = None
    low: int | None = None
    high: int | None = None

    def __str__(self) -> str:
        parts: list[str] = []
        if self.op is not None:
            parts.append(f"op {self.op}")
        if self.tensor is not None:
            parts.append(self.tensor)
        if self.core is not None:
            parts.append(f"core {self.core}")
        if self.low is not None:
            parts.append(f"bytes {self.low:#x}" + ("" if self.high is None else f"..{self.high:#x}"))
        return ", ".join(parts)


def fault(kind: FaultKind, message: str, place: Place, *, hint: str | None = None) -> MachineFault:
    """Build the exception for one misbehaviour of the program.

    Returns:
        The fault, for the caller to raise.
    """
    return MachineFault(kind.value, message, where=str(place) or None, hint=hint)
