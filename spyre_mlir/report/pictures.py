"""The three pictures of the page: roofline, cores in use, and scratchpad contents over time."""

from __future__ import annotations

from spyre_mlir.hw.cost_parameters import CALIBRATED, PEAK, CostParameters
from spyre_mlir.machine.bundle.timeline import TimedKernel, Timeline
from spyre_mlir.report.plots import Line, Mark, Plot, Scale, line, short

WIDTH, HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 40
_MOST_RECTANGLES = 2000  # more would be finer than a line of the page


def _x(low: float, high: float, *, logarithmic: bool = False) -> Scale:
    return Scale(low, high, _LEFT, WIDTH - _RIGHT, logarithmic)


def _y(low: float, high: float, *, logarithmic: bool = False) -> Scale:
    return Scale(low, high, HEIGHT - _BOTTOM, _TOP, logarithmic)


def roofline(timeline: Timeline) -> Plot:
    """Plot matmuls by intensity and rate under the roofs of both profiles; all other kernels only move bytes."""
    x, y = _x(0.1, 10_000, logarithmic=True), _y(1e9, 1e15, logarithmic=True)
    marks = [
        Mark(x(min(max(i, x.low), x.high)), y(min(max(r, y.low), y.high)), _title(k), k.cost.bound.value)
        for k, i, r in map(_rate, timeline.kernels)
        if r > 0
    ]
    cores = timeline.spec.cores_per_card
    lines = [_roof("peak", PEAK, x, y, cores), _roof("calibrated", CALIBRATED, x, y, cores)]
    return Plot(x, y, "FLOP per byte of device memory", "FLOP/s", marks, lines)


def _rate(kernel: TimedKernel) -> tuple[TimedKernel, float, float]:
    """A kernel's arithmetic per byte moved, and per second; a point of the iteration space counts as one."""
    work = kernel.work
    operations = float(2 * work.macs or work.elements)
    moved = work.moved()
    seconds = kernel.cost.total / work.trips / 1e6 if work.trips else 0.0
    return kernel, operations / moved if moved else float("inf"), operations / seconds if seconds else 0.0


def _roof(name: str, p: CostParameters, x: Scale, y: Scale, cores: int) -> Line:
    compute = 2 * p.pe_mac_per_ns_per_core * cores * 1e9
    memory = p.hbm_gb_per_s * 1e9
    ridge = compute / memory
    points = [(x.low, x.low * memory), (ridge, compute), (x.high, compute)]
    return line(points, x, y, f"{name}: {short(compute)}FLOP/s, {short(memory)}B/s, ridge {ridge:.0f} FLOP/B", name)


def core_use(timeline: Timeline) -> Plot:
    """Plot the number of active cores over time."""
    x, y = _x(0, timeline.kernels_us or 1.0), _y(0, timeline.spec.cores_per_card)
    marks = [
        Mark(
            x(start),
            y(k.work.cores),
            _title(k),
            k.cost.bound.value,
            x(start + duration) - x(start),
            y(0) - y(k.work.cores),
        )
        for k, start, duration in _longest([(timeline.kernels[n], s, d) for n, s, d in timeline.runs])
    ]
    return Plot(x, y, "us", "cores", marks)


def _longest(runs: list[tuple[TimedKernel, float, float]]) -> list[tuple[TimedKernel, float, float]]:
    shown = sorted(runs, key=lambda run: -run[2])[:_MOST_RECTANGLES]
    return sorted(shown, key=lambda run: run[1])


def scratchpads(timeline: Timeline) -> Plot:
    """Plot the contents of one core's scratchpad: time to the right, addresses upwards."""
    used = max((r.address + r.bytes for r in timeline.residents), default=0)
    x, y = _x(0, timeline.kernels_us or 1.0), _y(0, min(timeline.spec.lx_bytes, 2 * used) or timeline.spec.lx_bytes)
    marks = [
        Mark(
            x(r.start_us),
            y(r.address + r.bytes),
            f"{timeline.kernels[r.kernel].launch.file}: {r.bytes:,} bytes at {r.address:,} on {len(r.cores)} cores, "
            f"{r.start_us:.1f} to {r.end_us:.1f} us",
            "lx",
            x(r.end_us) - x(r.start_us),
            y(r.address) - y(r.address + r.bytes),
        )
        for r in timeline.residents[:_MOST_RECTANGLES]
    ]
    usable = [(x.low, timeline.spec.lx_usable_bytes), (x.high, timeline.spec.lx_usable_bytes)]
    limits = [line(usable, x, y, "usable", "peak")] if y.high >= timeline.spec.lx_usable_bytes else []
    return Plot(x, y, "us", "bytes of one core", marks, limits)


def _title(kernel: TimedKernel) -> str:
    cost = kernel.cost
    return (
        f"{kernel.launch.file} {kernel.launch.descriptor.op_func_name}: {cost.total:.2f} us, bound by "
        f"{cost.bound.value}{f', {kernel.source}' if kernel.source else ''}"
    )
