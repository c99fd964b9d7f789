"""HTML pages: of a program, with time per kernel, the roofline, scratchpads, host steps, faults; and of two compared.

A page stands alone: no script, no font and no picture from elsewhere. It reads on paper and on a phone, and without
its script, which sorts and filters its tables.

Decision: docs/decisions/0046-a-page-without-scripts.md
Decision: docs/decisions/0130-a-page-that-sorts.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spyre_mlir.dialects.superdsc.model.certainty import certainty_of
from spyre_mlir.hw.certainty import Tag
from spyre_mlir.machine.bundle.timeline import TimedKernel, Timeline
from spyre_mlir.report.accuracy import Accuracy
from spyre_mlir.report.advice import advice
from spyre_mlir.report.host_steps import HostWork, left_out
from spyre_mlir.report.pictures import core_use, roofline, scratchpads
from spyre_mlir.report.plan_picture import PlannedFunction
from spyre_mlir.report.plots import short
from spyre_mlir.report.shares import Share, by_function, by_line, by_module, moving_us
from spyre_mlir.report.verification import Bisection, Verification

if TYPE_CHECKING:
    from spyre_mlir.report.rival.beside import BesideRival

UNKNOWN_SOURCE = "unknown"


@dataclass(frozen=True)
class Fact:
    """A number for the head of the page, with its caption."""

    value: str
    meaning: str


@dataclass(frozen=True)
class Row:
    """Time of one kernel, or of several that have something in common.

    Attributes:
        name: the file of the kernel, or what they have in common.
        what: functions and shape.
        us: microseconds.
        part: of the total, from 0 to 1.
        bar: of the longest, from 0 to 1.
        bound: what it waits for.
        details: further cells.
        folded: names and times of the modules that the row stands for, if there are several.
        modules: how many modules the row stands for.
    """

    name: str
    what: str
    us: float
    part: float
    bar: float
    bound: str
    details: tuple[str, ...] = ()
    folded: tuple[tuple[str, float], ...] = ()
    modules: int = 1


def page_text(
    name: str,
    timeline: Timeline,
    host: Sequence[HostWork],
    faults: Sequence[str] | None,
    undecided: Sequence[str] = (),
    accuracy: Accuracy | None = None,
    verification: Verification | Bisection | None = None,
    plan: Sequence[PlannedFunction] = (),
    rival: BesideRival | None = None,
) -> str:
    """Render the page as HTML.

    Args:
        name: of the program.
        timeline: its kernels in time.
        host: what the host does.
        faults: what the machine found in a run, one line each; None if the program has not run.
        undecided: by setting that public sources leave open, which results of the run depend on it.
        accuracy: of a run in device numerics, launch by launch; None if it was not compared.
        verification: of every level against torch, or of the files against the levels; None without one.
        plan: of its functions; empty if the kernel level is not known.
        rival: the plan beside that of torch-spyre's rules; None if that was not asked for.
    """
    return _filled(
        "page.html.j2",
        name=name,
        profile=timeline.profile,
        facts=facts(timeline, host),
        kernels=kernels_by_layer(timeline),
        advice=advice(timeline),
        shares={
            "function": share_rows(by_function(timeline)),
            "module": share_rows(by_module(timeline), modules=True),
            "line": share_rows(by_line(timeline)),
        },
        roofline=roofline(timeline),
        cores=core_use(timeline),
        scratchpads=scratchpads(timeline),
        usable=timeline.spec.lx_usable_bytes,
        host=host,
        faults=faults,
        undecided=undecided,
        accuracy=accuracy,
        verification=verification,
        plan=plan,
        rival=rival,
        rival_scratchpads=None if rival is None or rival.rival is None else scratchpads(rival.rival),
        card_cores=timeline.spec.cores_per_card,
    )


def comparison_text(
    title: str, profile: str, columns: Sequence[str], tables: Mapping[str, Sequence[Sequence[str]]]
) -> str:
    """Render the page of a comparison as HTML.

    Args:
        title: of the page.
        profile: of the cost model.
        columns: names of the columns but the first.
        tables: rows of cells, by what a row is.
    """
    return _filled("comparison.html.j2", title=title, profile=profile, columns=columns, tables=tables)


def _filled(template: str, **values: object) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # loaded for pages alone: a tenth of a second

    environment = Environment(
        loader=PackageLoader("spyre_mlir.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["short"] = short
    return environment.get_template(template).render(values)


def facts(timeline: Timeline, host: Sequence[HostWork]) -> list[Fact]:
    """The numbers at the head of the page."""
    total, least, busy = timeline.total_us, timeline.roofline_us, timeline.kernels_us
    bounds = [f"{bound} {us / busy:.0%}" for bound, us in timeline.times_by_bound.items() if busy]
    bound = "at least " if timeline.is_lower_bound else ""
    weakest = Tag.weakest(certainty_of(k.launch.descriptor).tag for k in timeline.kernels)
    own = timeline.moved_per_core_bytes
    found = [
        Fact(
            f"{bound}{total:,.1f} us",
            f"predicted for {len(timeline.kernels)} kernels, {timeline.profile} profile; "
            + left_out(host, timeline.host_steps),
        ),
        Fact(f"{bound}{total / least:.1f} x" if least else "-", f"the {least:,.1f} us of the roofline"),
        Fact(bounds[0] if bounds else "-", "bottleneck" + (f"; then {', '.join(bounds[1:])}" if bounds[1:] else "")),
        Fact(f"{_part(moving_us(timeline), busy):.0%}", "of the time only rearranges data: copies, layouts, formats"),
        Fact(f"{timeline.traffic_ratio:.2f} x", f"the {short(timeline.compulsory_bytes)}B that must move"),
        Fact(f"{short(timeline.moved_bytes)}B", f"moved; {short(own)}B if every core loaded its own copy"),
        Fact(f"{timeline.core_use:.0%}", "of the cores in use, over time"),
    ]
    if any(k.work.product is not None for k in timeline.kernels):
        found.append(Fact(f"{timeline.fill:.0%}", "of the PE array filled, over products"))
        found.append(Fact(f"{timeline.pe_use:.2%}", "of the PE array's peak, over all the time"))
    return [*found, Fact(weakest.word, "the least certain feature a kernel relies on")]


def share_rows(shares: Sequence[Share], *, modules: bool = False) -> list[Row]:
    """Time of kernels that have something in common, such as equal modules."""
    longest = max((share.us for share in shares), default=0.0)
    return [
        Row(
            share.name,
            _functions(share.kernels),
            share.us,
            share.part,
            _part(share.us, longest),
            _bound(share.kernels),
            (f"{share.moving_us / share.us:.0%}" if share.moving_us else "",),
            _folded(share) if modules and share.times > 1 else (),
            share.times,
        )
        for share in shares
    ]


def kernel_rows(timeline: Timeline) -> list[Row]:
    """Time by kernel, in execution order."""
    longest = max((k.cost.total for k in timeline.kernels), default=0.0)
    return [_kernel_row(k, timeline.kernels_us, longest) for k in timeline.kernels]


def kernels_by_layer(timeline: Timeline) -> dict[str, list[Row]]:
    """The rows of kernels by layer of the model, those of no layer first."""
    found: dict[str, list[Row]] = {"": []}
    for kernel, row in zip(timeline.kernels, kernel_rows(timeline), strict=True):
        found.setdefault(kernel.launch.layer, []).append(row)
    return found


def _folded(share: Share) -> tuple[tuple[str, float], ...]:
    """The modules of a share and their times, if there are several."""
    times: dict[str, float] = {}
    for kernel in share.kernels:
        times[kernel.launch.module] = times.get(kernel.launch.module, 0.0) + kernel.cost.total
    return tuple(times.items())


def _functions(kernels: Sequence[TimedKernel]) -> str:
    return f"{len(kernels)}: {', '.join(dict.fromkeys(k.launch.descriptor.op_func_name for k in kernels))}"


def _bound(kernels: Sequence[TimedKernel]) -> str:
    return max(kernels, key=lambda k: k.cost.total).cost.bound.value


def _part(us: float, whole: float) -> float:
    return us / whole if whole else 0.0


def _kernel_row(kernel: TimedKernel, total: float, longest: float) -> Row:
    descriptor, work, cost = kernel.launch.descriptor, kernel.work, kernel.cost
    moved, needed = work.moved(), work.needed
    shape = "x".join(str(dim.extent) for dim in descriptor.dims)
    trips = f" x{work.trips}" if work.trips > 1 else ""
    details = (
        f"{short(moved * work.trips)}B" if moved else "",
        f"{moved / needed:.2f}" if needed else "",
        str(work.cores),
        f"{cost.fill:.0%}" if work.product is not None else "",
        certainty_of(descriptor).tag.value,
        kernel.source or UNKNOWN_SOURCE,
    )
    what = f"{descriptor.op_func_name} {shape}{trips}"
    parts = _part(cost.total, total), _part(cost.total, longest)
    return Row(kernel.launch.file, what, cost.total, *parts, cost.bound.value, details)
