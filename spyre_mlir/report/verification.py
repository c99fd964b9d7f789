"""Comparison of every level of a program, with torch or with each other, and the first op that differs.

`docs/reference/verification.schema.json` and `docs/reference/bisection.schema.json` are the schemas of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.choices import Numerics
from spyre_mlir.debug.divergence import Divergence
from spyre_mlir.dialects.flips import Flip
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from spyre_mlir.errors import MachineFault, SpyreError
from spyre_mlir.report.figures import finite
from spyre_mlir.report.tables import listing
from spyre_mlir.text.notebook import ShownAsText

Array = NDArray[Any]
FORMAT, BISECTION, VERSION = "spyre-verification", "spyre-bisection", 1


def error_of(got: Array, expected: Array) -> float:
    """Return max|got - expected| over max|expected|, over finite numbers; infinite where non-finite elements differ.

    Integers and truth values are equal or wrong, whatever else is in their tensor: they are not divided.
    """
    a, b = got.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or np.isnan(a[finite]).any():
        return float("inf")
    largest = float(np.max(np.abs(b[finite]), initial=0.0))
    difference = float(np.max(np.abs(a[finite] - b[finite]), initial=0.0))
    if expected.dtype.kind != "f":
        return difference
    return difference / largest if largest else difference


@dataclass(frozen=True)
class VerifiedLevel:
    """Difference between one level and torch: the largest error of any result; infinite if the level could not run.

    Attributes:
        level: which level.
        error: max|a - b| / max|b|; of integers max|a - b|.
        fault: why it could not run.
        explained: whether the steps that rounding decides are all that differs, see `Verification.flips`.
    """

    level: str
    error: float
    fault: str = ""
    explained: bool = False

    def agrees(self, tolerance: float) -> bool:
        """Return whether the level agrees with torch, apart from steps that rounding decides."""
        return self.error <= tolerance or self.explained

    @staticmethod
    def of(level: str, got: Sequence[Array] | str, expected: Sequence[Array]) -> VerifiedLevel:
        """Compare the results of a level with torch's; an error in place of results is an infinite difference."""
        if isinstance(got, str):
            return VerifiedLevel(level, float("inf"), got)
        return VerifiedLevel(level, max((error_of(a, b) for a, b in zip(got, expected, strict=True)), default=0.0))

    @staticmethod
    def run(run: Callable[[], list[Array]], files: bool) -> list[Array] | str:
        """Results of a level, or its fault; for files also their other defects."""
        try:
            return run()
        except SpyreError as error:
            if not files and not isinstance(error, MachineFault):
                raise
            return str(error)


@dataclass(frozen=True, repr=False)
class Bisection(ShownAsText):
    """Outcome of `spyre-run --bisect`: true if the files compute what the levels beside them do.

    Attributes:
        compared: the levels that the directory has.
        divergence: the first op whose value differs from the level above; None if all agree.
        numerics: of the runs.
    """

    compared: tuple[str, ...]
    divergence: Divergence | None
    numerics: Numerics = "exact"

    def __bool__(self) -> bool:
        """Return whether there is no divergence."""
        return self.divergence is None

    def __str__(self) -> str:
        """The divergence, or a line that there is none."""
        if self.divergence is not None:
            return str(self.divergence)
        agrees = f"no divergence: the bundle agrees with {', '.join(self.compared)}"
        if self.numerics == "exact":
            return agrees
        return f"{agrees}; all of them ran in {self.numerics} numerics, which --accuracy compares with exact ones"

    def json(self) -> str:
        """Return the text of the JSON file."""
        value: JsonObject = {
            "format": BISECTION,
            "version": VERSION,
            "agrees": bool(self),
            "numerics": self.numerics,
            "compared": [*self.compared],
            "divergence": divergence_value(self.divergence),
        }
        return dump_text(value)


EXACT = (
    "all of this is in exact numerics, so the compiler kept the meaning of the model; "
    "the device rounds and may overflow, which `accuracy` measures"
)


@dataclass(frozen=True, repr=False)
class Verification(ShownAsText):
    """Outcome of `verify`: true if every level is within the tolerance, apart from steps that rounding decides.

    Attributes:
        levels: the four levels, then the bundle from disk.
        tolerance: the largest error that counts as equal.
        divergence: the first op whose value differs from the level above, if a level differs.
        flips: the operators that jump, of which elements lie so near a boundary that a legal rounding decides them.
    """

    levels: tuple[VerifiedLevel, ...]
    tolerance: float
    divergence: Divergence | None = None
    flips: tuple[Flip, ...] = ()

    def __bool__(self) -> bool:
        """Return whether every level agrees with torch."""
        return all(level.agrees(self.tolerance) for level in self.levels)

    def json(self) -> str:
        """Return the text of the JSON file; an error that is no number, or infinite, is null."""
        head: JsonObject = {
            "format": FORMAT,
            "version": VERSION,
            "agrees": bool(self),
            "tolerance": self.tolerance,
        }
        levels: list[Json] = [
            {
                "level": one.level,
                "agrees": one.agrees(self.tolerance),
                "error": finite(one.error),
                "verdict": self.verdict(one),
                "fault": one.fault,
            }
            for one in self.levels
        ]
        return dump_text(
            {
                **head,
                "levels": levels,
                "steps": [str(flip) for flip in self.flips],
                "divergence": divergence_value(self.divergence),
            }
        )

    def __str__(self) -> str:
        """A table of levels and errors, then faults and the divergence, or what agreement does not say."""
        rows = ((level.level, f"{level.error:.2e}", self.verdict(level)) for level in self.levels)
        table = listing("", {"level": "left", "error": "right", "verdict": "left"}, rows)
        faults = [f"{level.level}: {level.fault}" for level in self.levels if level.fault]
        named = [] if self.divergence is None else [str(self.divergence)]
        exact = [EXACT] if self else []
        return "\n".join([table, *faults, *map(str, self.flips), *named, *exact])

    def verdict(self, level: VerifiedLevel) -> str:
        """Return the verdict on a level for the table."""
        if level.error <= self.tolerance:
            return "ok"
        return "rounding at a step" if level.explained else f"above {self.tolerance:g}"


def divergence_value(found: Divergence | None) -> Json:
    """Return a divergence as JSON; null if there is none, and for values that are no finite numbers."""
    if found is None:
        return None
    difference = found.difference
    worst: Json = None
    if difference is not None:
        worst = {
            "index": list(difference.index),
            "got": finite(difference.got),
            "expected": finite(difference.expected),
            "error": finite(difference.error),
        }
    return {
        "level": found.level,
        "above": found.above,
        "op": found.op,
        "file": found.file,
        "line": "" if found.source.file is None else f"{found.source.file}:{found.source.line}",
        "module": found.source.module,
        "difference": worst,
        "reason": found.reason,
        "text": str(found),
    }


__all__ = ["Bisection", "Verification", "VerifiedLevel", "divergence_value", "error_of"]
