"""Two reports side by side: in total, by function, by module and by line, with the largest change first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import JustifyMethod

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.backend.whole_files.whole_file import save_text
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from spyre_mlir.errors import InputError
from spyre_mlir.report.figures import Figures, KernelFigures
from spyre_mlir.report.page import comparison_text
from spyre_mlir.report.shares import UNKNOWN, folded_modules
from spyre_mlir.report.tables import listing
from spyre_mlir.report.timing import three_digits
from spyre_mlir.text.notebook import ShownAsText

FORMAT, VERSION = "spyre-comparison", 1
SHOWN = 12  # rows of a table in the terminal
COLUMNS: tuple[str, ...] = ("before", "after", "change", "ratio", "launches")
SPARE = ("launches", "before", "ratio")  # columns that a narrow terminal has no room for, the first one first


@dataclass(frozen=True)
class Change:
    """One figure of both programs.

    Attributes:
        name: what it is of.
        before, after: its values.
        launches: of the kernels it sums up, in both programs; None of other figures.
    """

    name: str
    before: float
    after: float
    launches: tuple[int, int] | None = None

    @property
    def difference(self) -> float:
        """How much more it is than before."""
        return self.after - self.before

    @property
    def differs(self) -> bool:
        """Return whether it has changed by more than rounding does."""
        moved = abs(self.difference) > 1e-9 * max(self.before, self.after)
        return moved or (self.launches is not None and self.launches[0] != self.launches[1])

    def cells(self) -> tuple[str, ...]:
        """Return it as text, in the order of the columns."""
        sign = "+" if self.difference > 0 else "-"
        change = f"{sign}{_text(abs(self.difference))}" if self.differs and self.difference else ""
        launches = "" if self.launches is None else " to ".join(map(str, dict.fromkeys(self.launches)))
        return (self.name, _text(self.before), _text(self.after), change, self.ratio, launches)

    def value(self) -> JsonObject:
        """Return it as plain data."""
        found: JsonObject = {"name": self.name, "before": self.before, "after": self.after}
        launches = self.launches
        if launches is not None:
            found["launches"] = {"before": launches[0], "after": launches[1]}
        return found

    @property
    def ratio(self) -> str:
        """Return it now over before, as text."""
        if self.before == self.after:
            return ""
        return f"{self.after / self.before:.2f} x" if self.before and self.after else "gone" if self.before else "new"


@dataclass(frozen=True, repr=False)
class Comparison(ShownAsText):
    """Figures of two programs, or of one at two times; prints itself as tables."""

    before: Figures
    after: Figures

    def __post_init__(self) -> None:
        """Refuses figures that do not compare."""
        if self.before.profile != self.after.profile:
            raise InputError(
                f"one report is of the profile {self.before.profile}, the other of {self.after.profile}",
                hint="make both reports with the same profile",
            )

    @property
    def totals(self) -> list[Change]:
        """Figures of the whole programs."""
        counted: list[tuple[str, Callable[[Figures], float]]] = [
            ("time, us", lambda f: f.total_us),
            ("rearranging data, us", lambda f: _us(k for k in f.kernels if k.rearranges)),
            ("launches", lambda f: sum(k.runs for k in f.kernels)),
            ("kernels in the bundle", lambda f: len({k.file for k in f.kernels})),
            ("device memory moved, MB", lambda f: f.moved_bytes / 1e6),
            ("roofline, us", lambda f: f.roofline_us),
            ("steps of the host", lambda f: sum(w.count for w in f.host)),
        ]
        return [Change(name, count(self.before), count(self.after)) for name, count in counted]

    def by_function(self) -> list[Change]:
        """Time by hardware function, the largest change first."""
        return self._grouped(lambda kernel: kernel.function)

    def by_module(self) -> list[Change]:
        """Time by module of the model, layers that differ in numbers as one, the largest change first."""
        names = folded_modules(kernel.module for side in (self.before, self.after) for kernel in side.kernels)
        return self._grouped(lambda kernel: names[kernel.module])

    def by_line(self) -> list[Change]:
        """Time by line of the model, the largest change first."""
        return self._grouped(lambda kernel: kernel.line or UNKNOWN)

    @property
    def tables(self) -> dict[str, list[Change]]:
        """The tables by what a row is."""
        return {"function": self.by_function(), "module": self.by_module(), "line": self.by_line()}

    @property
    def _title(self) -> str:
        """The programs that are compared, or the one of both sides."""
        before, after = self.before.name, self.after.name
        return f"{before}, before and after" if before == after else f"{before} to {after}"

    def __str__(self) -> str:
        """A table of the totals, and one for each way to sum up kernels."""
        title = f"{self._title}, predicted, {self.before.profile} profile"
        lines = [listing(title, _columns("total"), [c.cells() for c in self.totals], SPARE, folded={"total": 12})]
        lines += [_table(what, changes) for what, changes in self.tables.items()]
        if self.before.lower_bound or self.after.lower_bound:
            lines.append("the time of host steps is unknown, and not part of any of these")
        return "\n".join(lines)

    def page(self, path: str | Path) -> Path:
        """Write the tables as an HTML page.

        Raises:
            InputError: the file cannot be written.
        """
        rows = {"total": self.totals, **self.tables}
        cells = {what: [change.cells() for change in changes] for what, changes in rows.items()}
        return save_text(Path(path), comparison_text(self._title, self.before.profile, COLUMNS, cells))

    def json(self) -> str:
        """The tables as the text of a JSON file, every change with its value before and after.

        ``docs/reference/comparison.schema.json`` is the schema of the file.
        """
        rows = {"totals": self.totals, **{f"by_{what}": changes for what, changes in self.tables.items()}}
        tables: JsonObject = {name: [change.value() for change in changes] for name, changes in rows.items()}
        head: JsonObject = {
            "format": FORMAT,
            "version": VERSION,
            "before": self.before.name,
            "after": self.after.name,
            "profile": self.before.profile,
            "lower_bound": self.before.lower_bound or self.after.lower_bound,
        }
        return dump_text(head | tables) + "\n"

    def _grouped(self, key: Callable[[KernelFigures], str]) -> list[Change]:
        groups: dict[str, tuple[list[KernelFigures], list[KernelFigures]]] = {}
        for side, figures in enumerate((self.before, self.after)):
            for kernel in figures.kernels:
                groups.setdefault(key(kernel), ([], []))[side].append(kernel)
        changes = [Change(name, _us(old), _us(new), (_runs(old), _runs(new))) for name, (old, new) in groups.items()]
        return sorted(changes, key=lambda change: (-abs(change.difference), -change.after, change.name))


def _text(figure: float) -> str:
    """A count as it is, anything else with three digits."""
    return f"{figure:,}" if isinstance(figure, int) else three_digits(figure)


def _us(kernels: Iterable[KernelFigures]) -> float:
    return sum((kernel.us for kernel in kernels), 0.0)


def _runs(kernels: Iterable[KernelFigures]) -> int:
    return sum(kernel.runs for kernel in kernels)


def _columns(first: str) -> dict[str, JustifyMethod]:
    return {first: "left", **dict.fromkeys(COLUMNS, "right")}


def _table(what: str, changes: Sequence[Change]) -> str:
    """The rows that change, the first ones, and a line for the others."""
    changed = [change for change in changes if change.differs]
    rows = [change.cells() for change in changed[:SHOWN]]
    text = (
        listing(f"time by {what}, us", _columns(what), rows, SPARE, folded={what: 12})
        if rows
        else f"time by {what}: no change"
    )
    if rest := changed[SHOWN:]:
        text += f"\nand {len(rest)} more that change by {three_digits(_us_of(rest))} us or less each"
    same = len(changes) - len(changed)
    return f"{text}\n{same} without change" if same and rows else text


def _us_of(changes: Sequence[Change]) -> float:
    return max(abs(change.difference) for change in changes)


__all__ = ["Change", "Comparison"]
