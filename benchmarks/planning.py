"""Predicted times of `workloads.toml` beside their bounds, in both profiles.

`python benchmarks/planning.py [--only TEXT]`. Microseconds under the cost model; nothing is measured on a card. Three
ways of dividing the work: each kernel *alone* by the usual rules, products and attention by the published rules of
torch-spyre's planner (*rival*; its joint solver is not in it), and *planned* together, in loops; inputs and results are
free in these (`inputs="free"`).

*Roofline* is the least time of all arithmetic or of all bytes from and to outside (`workload_bounds.py`), *serial* the
least of the program's steps one after the other (`spyre_mlir.planning.bounds`), *by* the planned time over the
roofline, for chains over the serial bound, *target* what it may be. *Placed* is the planned time with inputs and
results that lie as torch-spyre places a tensor, *own* its bound: the roofline and one relayout of each input that no
function reads like that. *Bytes* are moved over compulsory ones, *cores* the least number on a kernel that moves 1 MB
or more, *inserted* is the part of the time in kernels that only rearrange data. Inputs and results that lie otherwise
although placed ones are asked for are named behind the figures.

A line below a workload says how many kernels that move 1 MB or more are on less than 30 cores, and what a plan takes
that has as many of them on 30 as the planner finds slices for, at any price and without loops.

The last lines compare with the rival, in the calibrated profile: workloads that take longer as planned, and geometric
means of the rival's time over the planned one. Means leave out workloads whose own bound is less than 1.4 times away
from the rival, and weights of few bits, which torch-spyre reads by a function of its own or not at all.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any
from unittest.mock import patch

from workload_bounds import BYTES, own_bound_us, roofline_us, work
from workload_models import case, read

from spyre_mlir.backend.split import split_module
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.cost import Work
from spyre_mlir.hw.cost_parameters import PROFILES, Profile
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.planning.bounds import serial_us
from spyre_mlir.planning.divided_kernels import DividedKernel, Prices
from spyre_mlir.planning.steps import steps_of
from spyre_mlir.report.own_layouts import own_layouts
from spyre_mlir.report.rival.building import rival_timelines
from spyre_mlir.report.shares import moving_us
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.universe import make_context

LAID_OUT_FREELY: PassOptions = {"place-inputs": {"inputs": "free"}}
WAYS: dict[str, PassOptions] = {
    "alone": {"plan": {"together": False}, **LAID_OUT_FREELY},
    "placed": {},
    "planned": LAID_OUT_FREELY,
}
FREE = ("alone", "rival", "planned")
NAMES: tuple[Profile, ...] = ("calibrated", "peak")
LARGE, BUSY = 1_000_000, 30
NEAR = 1.4  # times its own bound: the rival leaves less to gain
FEW_BITS = ("swiglu8", "swiglu_integers")  # kinds of workloads
SLOWER = 1.001  # a planned time over the rival's that counts as longer


@dataclass(frozen=True)
class Result:
    """A workload after lowering in every way.

    Attributes:
        serial_us: the serial bound, by profile.
        timelines: by way and profile.
        seconds: CPU time of lowering as planned.
        layouts: inputs and results with layouts of their own although placed.
    """

    serial_us: dict[str, float]
    timelines: dict[tuple[str, str], Timeline]
    seconds: float
    layouts: tuple[str, ...]


def compiled(workload: dict[str, Any]) -> Result:
    """Lowers a workload in every way."""
    built = case(workload)
    module = import_program(built.model, built.inputs).module
    timelines = dict[tuple[str, str], Timeline]()
    ruled = rival_timelines(module, LAID_OUT_FREELY, NAMES)
    timelines |= {("rival", name): timeline for name, timeline in zip(NAMES, ruled, strict=True)}
    serial, seconds, layouts = dict[str, float](), 0.0, tuple[str, ...]()
    for way, options in WAYS.items():
        started = time.process_time()
        modules = lower(module, make_context(), options=options).modules
        seconds = time.process_time() - started
        timelines |= {(way, name): module_timeline(modules["superdsc"], name) for name in NAMES}
        serial = {name: serial_us(steps_of(modules["spyre.loop"]), PROFILES[name]) for name in NAMES}
        layouts = own_layouts(split_module(modules["superdsc"])[0]) if way == "placed" else layouts
    return Result(serial, timelines, seconds, layouts)


def cells(workload: dict[str, Any], result: Result) -> list[str]:
    """One row of the table."""
    row = [f"{workload['name']:46}"]
    for number, name in enumerate(NAMES):
        least, own = roofline_us(workload, name), own_bound_us(workload, name)
        times = {way: result.timelines[way, name].total_us for way in (*FREE, "placed")}
        target = f"{workload['target'][number]:6.2f}" if "target" in workload else "     -"
        row += [f"{us:9.1f}" for us in (*(times[way] for way in FREE), least, result.serial_us[name])]
        bound = result.serial_us[name] if workload.get("against") == "serial" else least
        row += [f"{times['planned'] / bound:6.2f}", target]
        row += [f"{times['placed']:9.1f}", f"{own:9.1f}", f"{times['placed'] / own:6.2f}"]
    timeline = result.timelines["planned", "calibrated"]
    large = [k.work.cores for k in timeline.kernels if k.work.moved() >= LARGE]
    row += [f"{timeline.moved_bytes / (work(workload)[1] * BYTES):6.2f}", f"{min(large, default=0):5}"]
    row += [f"{moving_us(timeline) / timeline.total_us:8.0%}", f"{len(timeline.kernels):7}"]
    own_names = ", ".join(line.partition(":")[0] for line in result.layouts)
    return [*row, f"{len(timeline.host_steps):4}", f"{result.seconds:5.1f}", own_names]


class BusyPrices(Prices):
    """Times of kernels as the planner sees them, twenty times longer for large kernels on few cores."""

    def us(self, candidate: DividedKernel, local: frozenset[int]) -> float:
        """Return the time of a kernel."""
        return super().us(candidate, local) * _dear(candidate.work, local)

    def floor_us(self, candidate: DividedKernel, local: frozenset[int]) -> float:
        """Return a time that none is below with these operands in the scratchpads."""
        return super().floor_us(candidate, local) * _dear(candidate.work, local)


def _dear(done: Work, local: frozenset[int]) -> float:
    moved = sum(o.bytes for n, o in enumerate(done.operands) if n not in local)
    return 20.0 if moved >= LARGE and done.cores < BUSY else 1.0


@contextmanager
def cores_first() -> Generator[None]:
    """Have the planner put large kernels on 30 cores wherever it can; nothing that other plans have learned counts."""
    choices = "spyre_mlir.transforms.kernel_plans.kernel_choices"

    def learned(spec: Any, parameters: Any) -> KernelChoices:
        return KernelChoices(spec, parameters=parameters)

    with patch(f"{choices}.Prices", BusyPrices), patch(f"{choices}._learned", learned):
        yield


def few_cores(workload: dict[str, Any], way: str, timeline: Timeline) -> str:
    """Return a sentence about large kernels on less than 30 cores, empty if there are none."""
    if not (few := _on_few_cores(timeline)):
        return ""
    built = case(workload)
    module = import_program(built.model, built.inputs).module
    # Loops would let a kernel move less at a time, on no more cores.
    options: PassOptions = {**WAYS[way], "plan": {"loops": False}}
    with cores_first():
        busy = module_timeline(lower(module, make_context(), options=options).modules["superdsc"])
    left = len(_on_few_cores(busy))
    return (
        f"{way}: kernels that move 1 MB or more, on {min(few)} cores: {len(few)}. A plan with as many of them on "
        f"{BUSY} as slices allow takes {busy.total_us:.1f} us, not {timeline.total_us:.1f}, and leaves {left}"
    )


@dataclass(frozen=True)
class Compared:
    """A workload beside the rival, in microseconds of the calibrated profile."""

    workload: dict[str, Any]
    rival: float
    planned: float

    @property
    def averaged(self) -> bool:
        """Whether it belongs in a mean."""
        far = self.rival >= NEAR * own_bound_us(self.workload, "calibrated")
        return far and self.workload["kind"] not in FEW_BITS


def beside_the_rival(rows: list[Compared]) -> list[str]:
    """Sentences about all workloads."""
    slower = [row for row in rows if row.planned > SLOWER * row.rival]
    told = [f"{row.workload['name']} {row.planned:.1f} us, the rival {row.rival:.1f}" for row in slower]
    averaged = [row for row in rows if row.averaged]
    sentences = [f"longer than by the rival's rules: {'; '.join(told) or 'none'}"]
    for what, attention in (("with attention", True), ("without attention", False)):
        ratios = [row.rival / row.planned for row in averaged if attention or row.workload["kind"] != "attention"]
        if ratios:
            sentences.append(f"{geometric_mean(ratios):.2f} times as fast on average, {what}, {len(ratios)} workloads")
    return sentences


def _on_few_cores(timeline: Timeline) -> list[int]:
    """The cores of large kernels on less than 30."""
    return [k.work.cores for k in timeline.kernels if k.work.moved() >= LARGE and k.work.cores < BUSY]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    chosen = [w for w in read() if parser.parse_args().only in w["name"]]
    columns = " ".join(f"{c:>9}" for c in (*FREE, "roofline", "serial"))
    columns += f"     by target {'placed':>9} {'own':>9}     by "
    print(f"{'':46} " + " ".join(f"{name:<90}" for name in NAMES))
    print(f"{'workload':46} " + columns * 2 + " bytes cores inserted kernels host CPU s layouts")
    compared = list[Compared]()
    for workload in chosen:
        result = compiled(workload)
        times = [result.timelines[way, "calibrated"].total_us for way in ("rival", "planned")]
        compared.append(Compared(workload, *times))
        print(*cells(workload, result), flush=True)
        for way in ("planned", "placed"):
            if told := few_cores(workload, way, result.timelines[way, "calibrated"]):
                print(f"    {told}", flush=True)
    print(*beside_the_rival(compared), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
