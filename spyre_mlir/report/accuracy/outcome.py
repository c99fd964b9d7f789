"""Accuracy of device numerics: of the results, and of every launch, the worst first, with what to try.

`docs/reference/accuracy.schema.json` is the schema of the JSON file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.debug.error_walk import KernelError
from spyre_mlir.dialects.superdsc.model.json_value import Json
from spyre_mlir.hw.formats import DL16_LARGEST
from spyre_mlir.machine.overflows import PAGE
from spyre_mlir.report.accuracy.attempts import Attempt
from spyre_mlir.report.figures import finite, plain
from spyre_mlir.report.shares import UNKNOWN, folded_modules
from spyre_mlir.report.tables import listing
from spyre_mlir.text.notebook import ShownAsText

Array = NDArray[Any]
FORMAT, VERSION = "spyre-accuracy", 1
SHOWN = 12
SHOWN_GROUPS = 8
# An error of this size may come from rounding alone; DLFloat16 has 10 significant bits.
ROUNDING = 0.01


@dataclass(frozen=True)
class ErrorGroup:
    """Launches that have something in common.

    Attributes:
        name: what they have in common.
        worst: the launch among them that adds most to the error.
        launches: how many there are.
        overflows, underflows: of all of them.
    """

    name: str
    worst: KernelError
    launches: int
    overflows: int
    underflows: int


@dataclass(frozen=True, repr=False)
class Accuracy(ShownAsText):
    """Difference between the results of device numerics and of more digits; the launches are run when asked for.

    Attributes:
        errors: per floating result, the root mean square of the difference over that of the reference; infinite where
            only one of the two is NaN.
        reference: what the results are compared with.
        walk: runs the program in both numerics, launch by launch; None if only the results are known.
        curable: whether `keep_float32` makes the error of a launch go away.
        attempt: compiles the program with changes that may cure it, and runs it; gets the launches, the worst first.
        untried: why it cannot.
    """

    errors: tuple[float, ...]
    reference: str = "double precision"
    walk: Callable[[], Sequence[KernelError]] | None = field(default=None, repr=False, compare=False)
    curable: Callable[[KernelError], bool] = field(default=lambda _: False, repr=False, compare=False)
    attempt: Callable[[Sequence[KernelError]], Sequence[Attempt]] = field(
        default=lambda _: (), repr=False, compare=False
    )
    untried: str = ""

    @staticmethod
    def of(got: Sequence[Array], expected: Sequence[Array]) -> Accuracy:
        """Compare results; non-floating ones have no rounding to measure."""
        pairs = zip(got, expected, strict=True)
        return Accuracy(tuple(_rms_error(a, b) for a, b in pairs if b.dtype.kind == "f"))

    @property
    def worst(self) -> float:
        """The largest error of any result."""
        return max(self.errors, default=0.0)

    @cached_property
    def launches(self) -> tuple[KernelError, ...]:
        """Error behind every launch, in execution order: device numerics against exact numerics."""
        return () if self.walk is None else tuple(self.walk())

    @cached_property
    def tried(self) -> tuple[Attempt, ...]:
        """Changes that may make the results more accurate, each compiled and run, with its effect and its price."""
        return tuple(self.attempt(self.worst_first))

    def trials(self) -> list[str]:
        """Sentences about changes that were tried, if more than rounding spoils the results."""
        if not self.is_spoilt:
            return []
        return [self.untried] if self.untried else [str(one) for one in self.tried]

    @property
    def is_spoilt(self) -> bool:
        """Return whether rounding alone does not explain the error of a launch."""
        return any(one.overflows or one.lost or one.error > ROUNDING for one in self.launches)

    @property
    def worst_first(self) -> list[KernelError]:
        """Launches by their share of the error; those with numbers beyond DLFloat16 or lost go first, as they ran."""
        return sorted(self.launches, key=lambda one: (0, 0.0) if one.overflows or one.lost else (1, -one.added))

    def by_function(self) -> list[ErrorGroup]:
        """Launches by hardware function, the worst first."""
        return self._groups(lambda one: one.function)

    def by_module(self) -> list[ErrorGroup]:
        """Launches by module of the model, the worst first; modules that differ in numbers are one."""
        names = folded_modules(one.module for one in self.launches)
        return self._groups(lambda one: names[one.module])

    def by_line(self) -> list[ErrorGroup]:
        """Launches by line of the model, the worst first."""
        return self._groups(lambda one: one.line or UNKNOWN)

    def _groups(self, key: Callable[[KernelError], str]) -> list[ErrorGroup]:
        members: dict[str, list[KernelError]] = {}
        for one in self.worst_first:
            members.setdefault(key(one), []).append(one)
        return [
            ErrorGroup(name, ones[0], len(ones), sum(o.overflows for o in ones), sum(o.underflows for o in ones))
            for name, ones in members.items()
        ]

    def advice(self) -> list[str]:
        """Sentences about what spoils the results, the first cause first, each with what to try."""
        found = [self._overflowed(), self._vanished(), self._rounded()]
        return [sentence for sentence in found if sentence]

    def _overflowed(self) -> str:
        beyond = [one for one in self.launches if one.overflows]
        if not beyond:
            return ""
        first, count = beyond[0], sum(one.overflows for one in beyond)
        results = "1 result is" if count == 1 else f"{count:,} results are"
        cure = (
            "compile with keep_float32=True" if self.curable(first) else "scale down what grows before it, and up again"
        )
        return (
            f"{results} beyond {DL16_LARGEST:,.0f}, the largest DLFloat16, first in {placed(first)}; what depends on "
            f"them is wrong\n  try: {cure}; see {PAGE}"
        )

    def _vanished(self) -> str:
        gone = sum(one.underflows for one in self.launches)
        worst = max(self.launches, key=lambda one: one.underflows, default=None)
        if worst is None or not gone or worst.added < ROUNDING:
            return ""
        return (
            f"{gone:,} results are below the smallest DLFloat16 and became 0, most in {placed(worst)}\n"
            "  try: scale up what is small, or compile with keep_float32=True"
        )

    def _rounded(self) -> str:
        worst = max(self.launches, key=lambda one: one.added, default=None)
        if worst is None or any(one.overflows for one in self.launches):
            return ""
        if max(one.error for one in self.launches) <= ROUNDING:
            return f"no launch is off by more than {ROUNDING:.0%}: rounding to DLFloat16 explains the difference"
        cure = "compile with keep_float32=True" if self.curable(worst) else "compute it in a less sensitive form"
        return (
            f"{placed(worst)} adds most to the error: {worst.before:.1e} before it, {worst.error:.1e} behind it\n"
            f"  try: {cure}"
        )

    def json(self) -> str:
        """Return the text of the JSON file: every launch, the worst first, sums of them, and what to try.

        An error that is infinite is null.
        """
        tried = self.tried if self.is_spoilt else ()
        return dump_text(
            {
                "format": FORMAT,
                "version": VERSION,
                "reference": self.reference,
                "errors": [finite(error) for error in self.errors],
                "launches": [plain(one) for one in self.worst_first],
                "by_function": [_group_value(group) for group in self.by_function()],
                "by_module": [_group_value(group) for group in self.by_module()],
                "by_line": [_group_value(group) for group in self.by_line()],
                "advice": [*self.advice()],
                "tried": [one.value() for one in tried],
            }
        )

    def __str__(self) -> str:
        """A line for the results; tables of launches and modules, and advice, if the launches can be run."""
        shown = ", ".join(f"{error:.2e}" for error in self.errors) or "none"
        line = [f"RMS error against {self.reference}: {shown}"] if self.errors or not self.launches else []
        if not self.launches:
            return "\n".join(line)
        return "\n".join([*line, self._launch_table(), self._module_table(), *self.advice(), *self.trials()])

    def _launch_table(self) -> str:
        ordered = self.worst_first
        rows = (
            (
                one.file.removesuffix(".json"),
                one.function,
                *_cells(one, one.overflows, one.underflows),
                one.module,
                one.line,
            )
            for one in ordered[:SHOWN]
        )
        columns = ("file", "function", *_NUMBERS, "module", "line")
        spare = ("underflows", "before", "module", "overflows", "line")
        table = _listing("launches that add most to the error, device against exact numerics", columns, rows, spare)
        rest = len(ordered) - SHOWN
        return table + (f"\nand {rest} launches that add less" if rest > 0 else "")

    def _module_table(self) -> str:
        rows = (
            (
                group.name,
                str(group.launches),
                *_cells(group.worst, group.overflows, group.underflows),
                group.worst.function,
            )
            for group in self.by_module()[:SHOWN_GROUPS]
        )
        spare = ("underflows", "before", "launches", "overflows", "function")
        columns = ("module", "launches", *_NUMBERS, "function")
        return _listing("error by module, of its worst launch", columns, rows, spare)


_NUMBERS = ("before", "behind", "overflows", "underflows")


def _cells(one: KernelError, overflows: int, underflows: int) -> tuple[str, ...]:
    """Errors and counts of a row; a count of 0 is left out."""
    behind = "no number" if one.lost else f"{one.error:.1e}"
    return f"{one.before:.1e}", behind, str(overflows or ""), str(underflows or "")


def _listing(title: str, names: Sequence[str], rows: Iterable[Sequence[str]], spare: Sequence[str]) -> str:
    right = (*_NUMBERS, "launches")
    return listing(title, {name: "right" if name in right else "left" for name in names}, rows, spare)


def _group_value(group: ErrorGroup) -> Json:
    return {
        "name": group.name,
        "launches": group.launches,
        "overflows": group.overflows,
        "underflows": group.underflows,
        "worst": plain(group.worst),
    }


def placed(one: KernelError) -> str:
    """Return the function of a launch with its place, e.g. ``mul at model.py:3 (layers.0)``."""
    place = f" at {one.line}" if one.line else f" of {one.file}"
    return f"{one.function}{place}" + (f" ({one.module})" if one.module else "")


def _rms_error(got: Array, expected: Array) -> float:
    a, b = got.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    difference, scale = float(np.nansum((a - b) ** 2)), float(np.nansum(b**2))
    return float(np.sqrt(difference / scale)) if scale else float(np.sqrt(difference))
