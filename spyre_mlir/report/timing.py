"""Predicted time of a program for the terminal: one line per kernel, and the totals.

Decision: docs/decisions/0095-host-steps-have-a-least-time.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10

from rich.console import JustifyMethod
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.directory import split_module
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.certainty import certainty_of
from spyre_mlir.hw.certainty import Tag
from spyre_mlir.hw.cost_parameters import Profile
from spyre_mlir.machine.bundle.host_times import HostStepTime, host_times
from spyre_mlir.machine.bundle.run import Loader
from spyre_mlir.machine.bundle.schedule import Schedule, launches, read_schedule, source_line
from spyre_mlir.machine.bundle.timeline import TimedKernel, Timeline, make_timeline
from spyre_mlir.report.advice import advice
from spyre_mlir.report.host_steps import HostWork, left_out
from spyre_mlir.report.shares import Share, by_function, by_module, moving_us
from spyre_mlir.report.tables import listing
from spyre_mlir.sizes import counted

COLUMNS: dict[str, JustifyMethod] = {
    "file": "left",
    "op": "left",
    "shape": "left",
    "us": "right",
    "bound": "left",
    "HBM MB": "right",
    "ratio": "right",
    "per core": "right",
    "cores": "right",
    "fill": "right",
    "sure": "left",
    "source": "left",
}
UNKNOWN = "unknown"  # the time that the host computes
# Left out where there is no room, the first one first.
SPARE = ("per core", "sure", "cores", "ratio", "HBM MB", "fill", "bound", "shape", "source")
LEGEND = (
    "ratio: bytes moved over those that must be; per core: if every core loaded its own copy; "
    "fill: of the PE array;\nsure: how well known the form of the kernel's file is: C certain, L likely, I inferred"
)
SHOWN_SHARES = 8  # functions and modules
SHOWN = 24  # kernels in the short form: those that take longest, in the order they run
_BYTES_PER_MB = 1e6


def module_timeline(module: ModuleOp, profile: Profile = "calibrated") -> Timeline:
    """Build the timeline of a module at the superdsc level, with source lines of the model."""
    program, bundle, files = split_module(module)
    host = host_times(program, profile)
    return bundle_timeline(bundle, lambda name: describe(files[name]), profile, sources_of(files), host, program)


def module_schedule(module: ModuleOp) -> Schedule:
    """Return the launches and loops of a module at the superdsc level."""
    program, bundle, files = split_module(module)
    return _schedule(bundle, lambda name: describe(files[name]), program)


def schedule_timeline(module: ModuleOp, schedule: Schedule, profile: Profile) -> Timeline:
    """Build the timeline of a schedule, which may have other launches than the module whose host steps it has."""
    program, _, files = split_module(module)
    return make_timeline(schedule, profile, sources_of(files), host_times(program, profile))


def bundle_timeline(
    bundle: ModuleOp,
    load: Loader,
    profile: Profile = "calibrated",
    sources: Mapping[str, str] | None = None,
    host: Sequence[HostStepTime] = (),
    program: ModuleOp | None = None,
) -> Timeline:
    """Build the timeline of a bundle whose files `load` reads; it is empty if the bundle has no device function."""
    return make_timeline(_schedule(bundle, load, program), profile, sources, host)


def _schedule(bundle: ModuleOp, load: Loader, program: ModuleOp | None) -> Schedule:
    return read_schedule(bundle, load, program) if bundle.body.block.ops else Schedule(())


def sources_of(files: Mapping[str, SdscOp]) -> dict[str, str]:
    """File and line of the model by the name of the SuperDSC file made from them."""
    return {name: source_line(str(op.location)) for name, op in files.items()}


def timing_text(timeline: Timeline, host: Sequence[HostWork] = (), shown: int = SHOWN) -> str:
    """Format the longest-running kernels, in execution order, and totals; `host` is the host work that they omit."""
    order = sorted(range(len(timeline.kernels)), key=lambda n: -timeline.kernels[n].cost.total)
    longest, rest = set(order[:shown]), order[shown:]
    kernels = [_cells(kernel) for number, kernel in enumerate(timeline.kernels) if number in longest]
    steps = [("host", step.op, "", UNKNOWN, "host", *[""] * 6, step.source) for step in timeline.host_steps]
    lines = [listing(f"predicted time, {timeline.profile} profile", COLUMNS, [*kernels, *steps], SPARE), LEGEND]
    if rest:
        together = sum(timeline.kernels[n].cost.total for n in rest)
        lines.append(f"and {counted(len(rest), 'shorter kernel')}, {three_digits(together)} us together")
    shares = {"function": by_function(timeline), "module": by_module(timeline)}
    groups = [_share_table(group, found) for group, found in shares.items() if len(found) > 1]
    return "\n".join([*lines, *groups, *_totals(timeline, host), *map(str, advice(timeline))])


def _share_table(group: str, shares: Sequence[Share], shown: int = SHOWN_SHARES) -> str:
    rows: list[tuple[str, ...]] = []
    for share in shares[:shown]:
        times = f"{share.name}, {share.times} times" if group == "module" and share.times > 1 else share.name
        moving = three_digits(share.moving_us) if share.moving_us else ""
        rows.append((times, three_digits(share.us), f"{share.part:.0%}", moving, str(len(share.kernels))))
    if rest := shares[shown:]:
        us, part = sum(share.us for share in rest), sum(share.part for share in rest)
        moving = sum(share.moving_us for share in rest)
        count = sum(len(share.kernels) for share in rest)
        rows.append((f"{len(rest)} more", three_digits(us), f"{part:.0%}", three_digits(moving), str(count)))
    numbers = ("us", "part", "rearranging", "kernels")
    columns: dict[str, JustifyMethod] = {group: "left", **dict.fromkeys(numbers, "right")}
    return listing(f"time by {group}", columns, rows, ("rearranging", "kernels"))


def _cells(kernel: TimedKernel) -> tuple[str, ...]:
    descriptor, work, cost = kernel.launch.descriptor, kernel.work, kernel.cost
    moved, needed = work.moved(), work.needed
    trips = f" x{work.trips}" if work.trips > 1 else ""
    return (
        kernel.launch.file.removesuffix(".json"),
        descriptor.op_func_name + trips,
        "x".join(str(dim.extent) for dim in descriptor.dims),
        three_digits(cost.total),
        cost.bound.value,
        three_digits(moved * work.trips / _BYTES_PER_MB) if moved else "",
        f"{moved / needed:.2f}" if needed else "",
        f"{work.moved_per_core / needed:.2f}" if needed else "",
        str(work.cores),
        f"{cost.fill:.0%}" if work.product is not None else "",
        certainty_of(descriptor).tag.value,
        kernel.source,
    )


def three_digits(number: float) -> str:
    """Format a number with three significant digits, never in scientific notation."""
    if number >= 1000:
        return f"{number:.0f}"
    digits = 2 if number == 0 else max(0, 2 - floor(log10(number)))
    return f"{number:.{min(digits, 5)}f}"


def _totals(timeline: Timeline, host: Sequence[HostWork]) -> list[str]:
    total, roofline = timeline.total_us, timeline.roofline_us
    busy, moving = timeline.kernels_us, moving_us(timeline)
    waits = ", ".join(f"{bound} {us / busy:.0%}" for bound, us in timeline.times_by_bound.items() if busy)
    steps = len(timeline.host_steps)
    least, also = ("at least ", f" and the transfers of {counted(steps, 'host step')}") if steps else ("", "")
    distance = (
        f", {least}{total / roofline:.1f} times the {three_digits(roofline)} us of the roofline" if roofline else ""
    )
    once, own = timeline.moved_bytes, timeline.moved_per_core_bytes
    compulsory, ratio = timeline.compulsory_bytes, f"{timeline.traffic_ratio:.2f} times"
    products = any(k.work.product is not None for k in timeline.kernels)
    weakest = Tag.weakest(certainty_of(k.launch.descriptor).tag for k in timeline.kernels)
    unknown = sum(None in launch.loops for launch in launches(tuple(k.launch for k in timeline.kernels)))
    moved, must, copies = (three_digits(count / _BYTES_PER_MB) for count in (once, compulsory, own))
    lines = [
        f"time: {least}{three_digits(total)} us for {counted(len(timeline.kernels), 'kernel')}{also}{distance}; "
        + left_out(host, timeline.host_steps),
        f"bottleneck: {waits or 'none'}",
        f"rearranging data, by copies, layout changes and conversions: {three_digits(moving)} us"
        + (f", {moving / busy:.0%}" if busy else ""),
        f"device memory: {moved} MB moved, {must} MB compulsory: {ratio}; {copies} MB if cores loaded their own copies",
        f"cores in use: {timeline.core_use:.0%}"
        + (f"; PE array filled: {timeline.fill:.0%}, at {timeline.pe_use:.2%} of its peak" if products else ""),
        f"least certain: {weakest.word}",
    ]
    if unknown:
        lines.append(f"{counted(unknown, 'kernel')} in loops whose length only the run knows, counted once")
    return lines
