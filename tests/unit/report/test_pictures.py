"""The three pictures, against places worked out from the axes: 644 points to the right, 248 upwards."""

from __future__ import annotations

from math import log10
from types import SimpleNamespace
from typing import Any

import pytest

from spyre_mlir.hw.cost import Cost, CostKind, MatmulLoops, Traffic, Work
from spyre_mlir.machine.bundle.timeline import Resident, TimedKernel, Timeline
from spyre_mlir.report.pictures import HEIGHT, WIDTH, core_use, roofline, scratchpads

LEFT, RIGHT, TOP, BOTTOM = 64, 708, 12, 260


def kernel(
    file: str,
    us: float,
    *,
    macs: int = 0,
    elements: int = 0,
    moved: int = 0,
    trips: int = 1,
    cores: int = 32,
    source: str = "",
) -> TimedKernel:
    launch: Any = SimpleNamespace(file=file, descriptor=SimpleNamespace(op_func_name="exp"))
    product = MatmulLoops(batch=1, rows=1, columns=1, depth=macs, splits=(1, 1, 1, 1)) if macs else None
    traffic = (Traffic(bytes=moved, needed=moved, per_core=moved),) if moved else ()
    work = Work(kind=CostKind.POINTWISE, cores=cores, elements=elements, operands=traffic, product=product, trips=trips)
    zero = dict.fromkeys(("memory", "memory_per_core", "ring", "scratchpad", "reread", "fixed", "roofline"), 0.0)
    return TimedKernel(launch, work, Cost(compute=us, fill=1.0, **zero), source)


def timeline(*kernels: TimedKernel, runs: Any = (), residents: Any = ()) -> Timeline:
    return Timeline("calibrated", kernels, tuple(runs), (), tuple(residents), 0)


def test_the_page_has_room_for_a_picture() -> None:
    assert (WIDTH, HEIGHT) == (720, 300)


def at(intensity: float, rate: float) -> tuple[float, float]:
    """From 0.1 to 10,000 FLOP per byte are five powers of ten, from 1e9 to 1e15 FLOP/s six."""
    x = LEFT + (log10(intensity) + 1) / 5 * (RIGHT - LEFT)
    return round(x, 2), round(BOTTOM + (log10(rate) - 9) / 6 * (TOP - BOTTOM), 2)


@pytest.mark.parametrize(
    ("one", "place"),
    [
        (kernel("a", 1.0, macs=500_000, moved=100_000), at(10, 1e12)),
        (kernel("a", 4.0, macs=500_000, moved=100_000, trips=4), at(10, 1e12)),  # all four runs take 4 us
        (kernel("a", 1.0, elements=1_000_000, moved=500_000), at(2, 1e12)),
        (kernel("a", 1.0, macs=500_000), at(10_000, 1e12)),  # nothing moved
        (kernel("a", 1.0, macs=500_000, moved=10**9), at(0.1, 1e12)),
        (kernel("a", 1.0, macs=5 * 10**10, moved=10**10), at(10, 1e15)),
        (kernel("a", 1.0, elements=1, moved=1), at(1, 1e9)),
    ],
)
def test_a_kernel_stands_at_its_intensity_and_rate(one: TimedKernel, place: tuple[float, float]) -> None:
    (mark,) = roofline(timeline(one)).marks
    assert (mark.x, mark.y) == place
    assert mark.kind == "compute"


def test_kernels_without_arithmetic_or_time_are_left_out() -> None:
    none = kernel("a", 1.0, moved=1), kernel("b", 0.0, macs=1), kernel("c", 1.0, macs=1, trips=0)
    assert roofline(timeline(*none)).marks == []


def test_titles_say_what_runs_how_long_and_where_it_is_from() -> None:
    plot = roofline(timeline(kernel("a.json", 1.0, macs=1, moved=1), kernel("b.json", 2.5, macs=1, source="m.py:3")))
    assert [mark.title for mark in plot.marks] == [
        "a.json exp: 1.00 us, bound by compute",
        "b.json exp: 2.50 us, bound by compute, m.py:3",
    ]
    assert (plot.x_label, plot.y_label) == ("FLOP per byte of device memory", "FLOP/s")


def test_the_roofs_of_both_profiles() -> None:
    """32 cores with 1536 or 1140 products per ns, two operations each; 204.8 or 150 GB/s."""
    peak, calibrated = roofline(timeline()).lines
    assert peak.title == "peak: 98.3 TFLOP/s, 205 GB/s, ridge 480 FLOP/B"
    assert calibrated.title == "calibrated: 73 TFLOP/s, 150 GB/s, ridge 486 FLOP/B"
    assert (peak.kind, calibrated.kind) == ("peak", "calibrated")
    corners = [at(0.1, 20.48e9), at(480, 98.304e12), at(10_000, 98.304e12)]
    assert peak.points == " ".join(f"{x},{y}" for x, y in corners)


def test_cores_in_use_over_time() -> None:
    runs = [(1, 6.0, 2.0), (0, 0.0, 6.0)]
    plot = core_use(timeline(kernel("a", 6.0, cores=32), kernel("b", 2.0, cores=8), runs=runs))
    whole, quarter = plot.marks
    assert (whole.x, whole.y, whole.width, whole.height) == (64, 12, 483, 248)
    assert (quarter.x, quarter.y, quarter.width, quarter.height) == (547, 198, 161, 62)
    assert [mark.title.split()[0] for mark in plot.marks] == ["a", "b"]
    assert {mark.kind for mark in plot.marks} == {"compute"}
    assert (plot.x_label, plot.y_label) == ("us", "cores")


def test_of_many_runs_the_longest_are_shown_in_their_order() -> None:
    runs = [(0, float(n), 2.0 if n in (7, 1500) else 1.0) for n in range(2001)]
    plot = core_use(timeline(kernel("a", 2001.0), runs=runs))
    assert len(plot.marks) == 2000
    places = [mark.x for mark in plot.marks]
    assert places == sorted(places)
    assert plot.x(1500) in places and plot.x(2000) not in places


def test_an_empty_bundle_has_a_picture_with_axes() -> None:
    for plot in (core_use(timeline()), scratchpads(timeline())):
        assert (plot.x.low, plot.x.high, plot.marks) == (0, 1.0, [])
    assert scratchpads(timeline()).y.high == 2 * 1024**2
    assert len(scratchpads(timeline()).lines) == 1


def resident(address: int, size: int, start: float, end: float) -> Resident:
    return Resident(address, size, range(4), start, end, 1)


def test_what_a_scratchpad_holds() -> None:
    """Addresses up to twice what is used, here 8,000 bytes; the kernels take 10 us."""
    held = [resident(1000, 1000, 0, 5), resident(2000, 2000, 5, 10)]
    plot = scratchpads(timeline(kernel("a", 4.0), kernel("b.json", 6.0), residents=held))
    low, high = plot.marks
    assert (low.x, low.y, low.width, low.height) == (64, 198, 322, 31)
    assert (high.x, high.y, high.width, high.height) == (386, 136, 322, 62)
    assert low.title == "b.json: 1,000 bytes at 1,000 on 4 cores, 0.0 to 5.0 us"
    assert low.kind == "lx"
    assert plot.lines == []
    assert (plot.x_label, plot.y_label) == ("us", "bytes of one core")


@pytest.mark.parametrize(("used", "high"), [(794_688, 1_589_376), (1_500_000, 2_097_152)])
def test_the_usable_part_is_marked_where_the_picture_reaches_it(used: int, high: int) -> None:
    plot = scratchpads(timeline(kernel("a", 4.0), kernel("b", 6.0), residents=[resident(0, used, 0, 10)]))
    assert plot.y.high == high
    (limit,) = plot.lines
    place = round(BOTTOM - 1_589_376 / high * (BOTTOM - TOP), 2)
    assert limit.points == f"64.0,{place} 708.0,{place}"
    assert (limit.title, limit.kind) == ("usable", "peak")
    assert scratchpads(timeline(kernel("a", 1.0), kernel("b", 1.0), residents=[resident(0, 794_687, 0, 1)])).lines == []


def test_at_most_two_thousand_buffers_are_shown() -> None:
    held = [resident(0, 1, 0, 1)] * 2001
    assert len(scratchpads(timeline(kernel("a", 4.0), kernel("b", 6.0), residents=held)).marks) == 2000
