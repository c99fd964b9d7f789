"""Error taxonomy shared by all packages.

A message says what, where, what was expected, what was found, and what to try.

Decision: docs/decisions/0015-exit-codes.md
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from xdsl.utils.exceptions import PassFailedException


class SpyreError(Exception):
    """Base of every error that is not a bug in this compiler.

    Args:
        message: what went wrong, with the expected and the actual value.
        where: the place: an op, a file:line of the model, a JSON path.
        hint: what to try.
    """

    code: ClassVar[str] = "SPY-0000"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.origin: int | None = None  # number of the aten op that cannot be lowered, if ops are numbered
        self.others: tuple[SpyreError, ...] = ()  # about other numbered ops, met by the same pass

    def __str__(self) -> str:
        text = f"[{self.code}] {self.message}"
        if self.where is not None:
            text += f"\n  at: {self.where}"
        if self.hint is not None:
            text += f"\n  try: {self.hint}"
        return text


class UnsupportedError(SpyreError):
    """A valid program that this compiler cannot express yet."""

    code = "SPY-U001"
    exit_code = 2


class DataSizesError(UnsupportedError):
    """A model that has no single program, because data decides sizes in it; it can be divided where it does.

    Args:
        refused: what an import as one program found.
        name: of the program.
        exported: the program as torch exported it.
    """

    def __init__(self, refused: UnsupportedError, name: str, exported: Any) -> None:
        super().__init__(refused.message, where=refused.where, hint=refused.hint)
        self.name = name
        self.exported = exported


class ImportProgramError(SpyreError):
    """A model or saved program that cannot be read as a functional ATen graph."""

    code = "SPY-I001"


class InputError(SpyreError):
    """An argument of a command or of a call that does not fit the program."""

    code = "SPY-I002"


class AbsentNamesError(InputError):
    """Names of operations that a program does not have.

    Args:
        message: about the first of them.
        names: all of them, as they were given.
        hint: what to try.
    """

    def __init__(self, message: str, names: tuple[str, ...], *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.names = names


class IntegerRangeError(InputError):
    """An integer of a call that the device has no exact number for."""


class NoRunError(InputError):
    """Integers of a call that a program takes for the places of whole pages, and that are others."""


class NoSuchPlaceError(InputError):
    """An integer of a call that an operator takes for an index, and that names no entry."""


class NotCompiledError(InputError, AttributeError):
    """A question about the program of a model that is compiled at its first call, and has none yet, or several."""


class BindingError(InputError):
    """Weights that do not fit the program they are bound to, or that cannot be read; all of them are listed."""

    code = "SPY-I003"


class RegistrationError(SpyreError, ValueError):
    """A plugin or the device that conflicts with an existing registration, or a plugin that cannot be loaded."""

    code = "SPY-P001"


class ConstraintError(SpyreError, ValueError):
    """Operation arguments that violate a numbered constraint of the operation's declaration."""

    code = "SPY-C001"


class LoweringError(SpyreError, PassFailedException):
    """A program that cannot be lowered to this machine; states what is needed and what is available."""

    code = "SPY-L001"


class EmitError(SpyreError):
    """IR that cannot be written in the requested file format."""

    code = "SPY-E001"


class ReadError(SpyreError):
    """A file that violates its format: names the file, the position, the expected and the actual content."""

    code = "SPY-R001"


class CollectiveError(SpyreError):
    """A collective that the ranks of its group did not complete: one is gone, or calls something else."""

    code = "SPY-D001"


@dataclass(frozen=True, kw_only=True)
class FaultPlace:
    """Location of a fault; unknown parts stay None.

    Args:
        op: the operation, as ``2:batchmatmul``.
        tensor: the operand, as ``Tensor1``.
        core: the core that did it.
        low: first byte touched.
        high: one past the last byte touched.
        level: the level that ran.
        line: the model's source line, or where the operation stands.
    """

    op: str | None = None
    tensor: str | None = None
    core: int | None = None
    low: int | None = None
    high: int | None = None
    level: str | None = None
    line: str | None = None

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


class FaultKind(StrEnum):
    """Every way a program can misbehave on the hardware model; the value is the stable word users see."""

    UNINITIALISED_READ = "uninitialised-read"
    OUT_OF_BOUNDS = "out-of-bounds"
    LX_OVERFLOW = "lx-overflow"
    MISALIGNED = "misaligned"
    WRONG_FORMAT = "wrong-format"
    DOUBLE_WRITE = "double-write"
    USE_AFTER_FREE = "use-after-free"
    DOUBLE_FREE = "double-free"
    OVERWRITTEN_READ = "overwritten-read"
    READ_WRITE_RACE = "read-write-race"
    COHORT_MISMATCH = "cohort-mismatch"
    INDEX_OUT_OF_RANGE = "index-out-of-range"
    DIVIDED_TABLE = "divided-table"
    SPAN = "span"
    STALE_READ = "stale-read"
    FOREIGN_SLICE = "foreign-slice"
    UNWRITTEN_OUTPUT = "unwritten-output"
    NAN_BORN = "nan-born"
    INT32_OVERFLOW = "int32-overflow"
    BAD_SCHEDULE = "bad-schedule"
    UNBOUND_SYMBOL = "unbound-symbol"
    DEADLOCK = "deadlock"
    MISMATCHED_COLLECTIVE = "mismatched-collective"
    DIVISION_BY_ZERO = "division-by-zero"
    LOOP_STEP = "loop-step"
    TRIP_COUNT = "trip-count"
    CONSTRAINT = "constraint"
    WRONG_SHAPE = "wrong-shape"
    WRONG_PRODUCT = "wrong-product"
    OPERAND_COUNT = "operand-count"
    HOST_STEP = "host-step"
    OVERFLOW = "overflow"


class MachineFault(SpyreError):
    """Misbehaviour of the program on the hardware model; the model itself works as intended.

    Args:
        kind: what happened.
        place: op, tensor, core, bytes, level and source line, as far as they are known.
    """

    code = "SPY-F001"
    exit_code = 3

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        place: FaultPlace | None = None,
    ) -> None:
        super().__init__(f"{kind.value}: {message}", where=where, hint=hint)
        self.kind = kind
        self.place = FaultPlace() if place is None else place


class OverflowFault(MachineFault):
    """Finite numbers of a run exceeded the largest DLFloat16, and the caller wants no results in that case."""

    code = "SPY-F002"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(FaultKind.OVERFLOW, message, where=where, hint=hint)


def frames_of_ours() -> int:
    """Return the `stacklevel` of the line that called this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("spyre_mlir."):
        frame, level = frame.f_back, level + 1
    return level
