"""Two plans of a program side by side: by torch-spyre's published rules, and as it is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import JustifyMethod

from spyre_mlir.hw.cost_parameters import Profile
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.report.plan_picture import PlannedRow
from spyre_mlir.report.shares import moving_us
from spyre_mlir.report.tables import listing
from spyre_mlir.report.timing import three_digits
from spyre_mlir.text.notebook import ShownAsText

SHOWN = 12  # operations in the terminal
_PAIRS = ("us", "MB", "kernels")
_SPARE = ("MB, rival", "MB", "line", "kernels, rival", "kernels", "module")  # where a terminal has no room
_LARGE_BYTES = 1_000_000


@dataclass(frozen=True)
class SideKernel:
    """A kernel of one plan.

    Attributes:
        row: its loops, slices and operands.
        us: predicted time of all runs.
        trips: how often it runs.
        moved_bytes: of device memory, in all runs.
        rearranges: whether it computes nothing.
    """

    row: PlannedRow
    us: float
    trips: int
    moved_bytes: int
    rearranges: bool


@dataclass(frozen=True)
class OperationPlans:
    """Kernels that both planners make for an operation, or for equal operations of equal layers.

    Attributes:
        name: of the operation.
        module: path in the model, a star for every layer.
        line: of the model's source, if known.
        rival, planned: kernels of each, in execution order.
        times: how many operations these are.
    """

    name: str
    module: str
    line: str
    rival: tuple[SideKernel, ...]
    planned: tuple[SideKernel, ...]
    times: int = 1

    @property
    def us(self) -> tuple[float, float]:
        """Times of both sides, all operations together."""
        rival, planned = (self.times * sum(k.us for k in side) for side in (self.rival, self.planned))
        return rival, planned

    @property
    def moved_bytes(self) -> tuple[int, int]:
        """Bytes of device memory of both sides, all operations together."""
        rival, planned = (self.times * sum(k.moved_bytes for k in side) for side in (self.rival, self.planned))
        return rival, planned

    @property
    def ratio(self) -> str:
        """The rival's time over the plan's, as text; empty if one of them is nothing."""
        return ratio_text(*self.us)


@dataclass(frozen=True)
class Total:
    """A figure of both plans, as text."""

    name: str
    rival: str
    planned: str
    ratio: str = ""


@dataclass(frozen=True, repr=False)
class BesideRival(ShownAsText):
    """Two plans of a program; printed as tables.

    Attributes:
        name: of the program.
        profile: of the cost model.
        planned: timeline of the program as it is compiled.
        rival: the same by the published rules; None if the program does not compile by them.
        operations: in the order of the model; those without a kernel are left out.
        notes: what the rival cannot compile, or would divide in a way that this compiler has no form for.
    """

    name: str
    profile: Profile
    planned: Timeline
    rival: Timeline | None
    operations: tuple[OperationPlans, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def totals(self) -> list[Total]:
        """Figures of both plans; none if there is no plan of the rival."""
        if self.rival is None:
            return []
        rival, planned = self.rival, self.planned
        return [
            _total("time, us", rival.total_us, planned.total_us),
            _total("rearranging data, us", moving_us(rival), moving_us(planned)),
            _total("device memory moved, MB", rival.moved_bytes / 1e6, planned.moved_bytes / 1e6),
            Total("kernels", str(len(rival.kernels)), str(len(planned.kernels))),
            Total("runs of kernels", str(len(rival.runs)), str(len(planned.runs))),
            Total("LX at most, bytes of a core", f"{_lx_peak(rival):,}", f"{_lx_peak(planned):,}"),
            Total("least cores of a kernel that moves 1 MB", str(_least_cores(rival)), str(_least_cores(planned))),
        ]

    def __str__(self) -> str:
        """A table of totals, one of operations, the largest differences first, and what the rival cannot compile."""
        title = f"{self.name}, torch-spyre's published rules and this plan, {self.profile} profile"
        lines = [title if self.rival is None else _totals_table(title, self.totals)]
        order = sorted(self.operations, key=lambda pair: -abs(pair.us[0] - pair.us[1]))
        if order:
            lines.append(listing("time by operation", _columns(), map(_cells, order[:SHOWN]), _SPARE, folded=_FOLDED))
        if rest := order[SHOWN:]:
            rival, planned = (sum(pair.us[side] for pair in rest) for side in (0, 1))
            together = f"{three_digits(rival)} us by the rules, {three_digits(planned)} us as planned"
            lines.append(f"and {len(rest)} more, together {together}")
        return "\n".join([*lines, *self.notes])


def ratio_text(rival: float, planned: float) -> str:
    """Return the rival's figure over the plan's; empty if one of them is nothing."""
    return f"{rival / planned:.2f} x" if rival and planned else ""


def _total(name: str, rival: float, planned: float) -> Total:
    return Total(name, three_digits(rival), three_digits(planned), ratio_text(rival, planned))


def _lx_peak(timeline: Timeline) -> int:
    return max((held for _, held in timeline.occupancy()), default=0)


def _least_cores(timeline: Timeline) -> int:
    return min((k.work.cores for k in timeline.kernels if k.work.moved() >= _LARGE_BYTES), default=0)


_FOLDED = {"operation": 12}


def _columns() -> dict[str, JustifyMethod]:
    pairs = [name for kind in _PAIRS for name in (f"{kind}, rival", kind)]
    return {"operation": "left", "module": "left", **dict.fromkeys((*pairs, "ratio"), "right"), "line": "left"}


def _cells(pair: OperationPlans) -> tuple[str, ...]:
    name = f"{pair.name}, {pair.times} times" if pair.times > 1 else pair.name
    times, moved = map(three_digits, pair.us), (three_digits(m / 1e6) for m in pair.moved_bytes)
    counts = (str(pair.times * len(side)) for side in (pair.rival, pair.planned))
    return name, pair.module, *times, *moved, *counts, pair.ratio, pair.line


def _totals_table(title: str, totals: Sequence[Total]) -> str:
    columns: dict[str, JustifyMethod] = {"total": "left", **dict.fromkeys(("rival", "planned", "ratio"), "right")}
    return listing(title, columns, [(t.name, t.rival, t.planned, t.ratio) for t in totals])


__all__ = ["BesideRival", "OperationPlans", "SideKernel", "Total", "ratio_text"]
