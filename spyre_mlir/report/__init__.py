"""Reports of the entry points: tables of stages, predicted time, and comparison with torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import JustifyMethod

from spyre_mlir.errors import InputError
from spyre_mlir.hw.formats import FP32
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.pipeline import StageRecord
from spyre_mlir.report.accuracy import Accuracy as Accuracy
from spyre_mlir.report.comparison import Comparison as Comparison
from spyre_mlir.report.figures import Figures as Figures
from spyre_mlir.report.figures import read_figures
from spyre_mlir.report.host_steps import HostWork
from spyre_mlir.report.own_layouts import OWN_LAYOUTS
from spyre_mlir.report.tables import listing
from spyre_mlir.report.timing import timing_text
from spyre_mlir.report.verification import Verification as Verification
from spyre_mlir.report.verification import VerifiedLevel as VerifiedLevel
from spyre_mlir.report.verification import error_of as error_of
from spyre_mlir.sizes import counted
from spyre_mlir.text.notebook import ShownAsText
from spyre_mlir.transforms.utils.host_fallback import HostStep, listed

if TYPE_CHECKING:
    from spyre_mlir.report.rival.beside import BesideRival

_SIZES = ("HBM bytes", "LX bytes/core", "HBM traffic", "seconds")


@dataclass(frozen=True, repr=False)
class Report(ShownAsText):
    """Result of compilation at every level; prints itself as a table.

    Attributes:
        name: name of the program.
        stages: one record per level.
        timeline: the predicted time of every kernel, if the program came down to files.
        host: what the host does beside them, which no time is predicted for.
        faults: what the machine found in the last call; None if there was none.
        host_steps: what the host runs because the device cannot.
        rival: the plan beside that of torch-spyre's rules, if that was asked for.
        layouts: inputs and results that lie otherwise than torch-spyre places them, and how.
        undecided: by setting that public sources leave open, which results of the last call depend on it.
    """

    name: str
    stages: tuple[StageRecord, ...]
    timeline: Timeline | None = None
    faults: tuple[str, ...] | None = None
    undecided: tuple[str, ...] = ()
    host_steps: tuple[HostStep, ...] = ()
    host: tuple[HostWork, ...] = ()
    rival: BesideRival | None = None
    layouts: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A table with one row per stage, one with the kernels that take longest, and what the last call met."""
        parts = [stage_table(self.name, self.stages), *_integers(self.stages)] if self.stages else []
        if self.host_steps:
            parts.append(f"on the host, because the device cannot; how long is unknown:\n{listed(self.host_steps)}")
        if self.layouts:
            parts += [f"{OWN_LAYOUTS}:", *(f"  {line}" for line in self.layouts)]
        if self.timeline is not None:
            parts.append(timing_text(self.timeline, self.host))
        if self.rival is not None:
            parts.append(str(self.rival))
        if self.faults is not None:
            parts.append("\n".join(f"last call: {line}" for line in self.faults or ("no faults",)))
        return "\n".join([*parts, *(f"depends on an open question: {line}" for line in self.undecided)])

    @property
    def figures(self) -> Figures:
        """The numbers of the report as plain data.

        Raises:
            InputError: the program did not come down to files.
        """
        if self.timeline is None:
            raise InputError(
                "a report without kernels has no figures", where=self.name, hint="compile the program to files"
            )
        return Figures.of(self.name, self.timeline, self.host, self.stages)

    def json(self) -> str:
        """The figures as the text of a JSON file, which `spyre-compile --compare` reads.

        Raises:
            InputError: the program did not come down to files.
        """
        return self.figures.json()

    def compare(self, after: Report | Figures | str | Path) -> Comparison:
        """Compare this report with a later one.

        Args:
            after: a report, its figures, or the JSON file of one.

        Raises:
            InputError: one of them has no kernels, or they are of different profiles.
            ReadError: the file is no report.
        """
        other = after.figures if isinstance(after, Report) else after
        return Comparison(self.figures, other if isinstance(other, Figures) else read_figures(Path(other)))


def _integers(records: Sequence[StageRecord]) -> list[str]:
    """Return the lines about integers of unknown size, and the cost of formats other than DL16; none if unused."""
    limit = FP32.integers[1]
    unknown = f"integers of unknown size: beyond {limit:,} is a fault"
    found = [(r.integers, "compute", unknown) for r in records]
    found += [(r.conversions, "convert", "between formats of numbers") for r in records]
    found += [(r.narrowed, "compute", "float32 in DL16: the hardware has no other form") for r in records]
    return [f"{counted(count, 'kernel', verb)} {text}" for count, verb, text in found if count]


def stage_table(name: str, records: Sequence[StageRecord]) -> str:
    """A table with one row per stage."""
    steps = any(r.host_steps for r in records)
    counts = ("ops", "kernels", *(["host steps"] if steps else []))
    columns: dict[str, JustifyMethod] = {"level": "left", **dict.fromkeys((*counts, *_SIZES), "right")}
    rows = (
        (
            r.level,
            str(r.ops),
            str(r.kernels or ""),
            *([str(r.host_steps or "")] if steps else []),
            *(f"{count:,}" if count else "" for count in (r.device_bytes, r.lx_bytes, r.traffic_bytes)),
            f"{r.seconds:.3f}",
        )
        for r in records
    )
    return listing(name, columns, rows, ("LX bytes/core", "HBM bytes", "seconds", "HBM traffic"))
