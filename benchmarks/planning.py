"""Predicted times of `workloads.toml` beside their bounds, in both profiles.

`python benchmarks/planning.py [--only TEXT] [--law NAME]`. Microseconds under the cost model; nothing is measured on a
card. *Roofline* is the least time of all arithmetic or all bytes from and to outside, *serial* the least of the
program's steps one after the other (`spyre_mlir.planning.bounds`). *Inserted* is the part of the time in kernels that
only rearrange data, *cores* the least number on a kernel that moves 1 MB or more.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

from workload_models import case, read

from spyre_mlir.frontend import import_program
from spyre_mlir.hw.cost_parameters import PROFILES, Profile
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.pipeline import lower
from spyre_mlir.planning.bounds import Bounds, bounds
from spyre_mlir.planning.steps import steps_of
from spyre_mlir.report.shares import moving_us
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.universe import make_context

PROFILE_NAMES: tuple[Profile, ...] = ("calibrated", "peak")
LARGE = 1_000_000


@dataclass(frozen=True)
class Planned:
    """A workload after lowering.

    Attributes:
        bounds: by profile.
        timelines: by profile.
        seconds: CPU time of import and lowering.
    """

    bounds: dict[str, Bounds]
    timelines: dict[str, Timeline]
    seconds: float


def plan(workload: dict[str, Any]) -> Planned:
    """Compiles a workload."""
    built = case(workload)
    started = time.process_time()
    lowered = lower(import_program(built.model, built.inputs).module, make_context())
    seconds = time.process_time() - started
    steps = steps_of(lowered.modules["spyre.loop"])
    return Planned(
        {name: bounds(steps, PROFILES[name]) for name in PROFILE_NAMES},
        {name: module_timeline(lowered.modules["superdsc"], name) for name in PROFILE_NAMES},
        seconds,
    )


def cells(workload: dict[str, Any], planned: Planned) -> list[str]:
    """One row of the table."""
    row = [f"{workload['name']:46}"]
    for number, name in enumerate(PROFILE_NAMES):
        timeline, bound = planned.timelines[name], planned.bounds[name]
        target = f"{workload['target'][number]:5.2f}" if "target" in workload else "    -"
        row += [f"{timeline.total_us:9.1f}", f"{bound.roofline:8.1f}", f"{bound.serial:8.1f}"]
        row += [f"{timeline.total_us / bound.roofline:6.2f}", target]
    timeline = planned.timelines["calibrated"]
    large = [k.work.cores for k in timeline.kernels if k.work.moved() >= LARGE]
    row += [f"{timeline.moved_bytes / max(1, planned.bounds['calibrated'].bytes):6.2f}", f"{min(large, default=0):5}"]
    row += [f"{moving_us(timeline) / timeline.total_us:8.0%}", f"{len(timeline.kernels):7}"]
    return [*row, f"{len(timeline.host_steps):4}", f"{planned.seconds:5.1f}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    chosen = [w for w in read() if parser.parse_args().only in w["name"]]
    profile = "".join(f" {name + ' us':>9} roofline   serial    by target" for name in PROFILE_NAMES)
    print(f"{'workload':46}{profile}  bytes cores inserted kernels host CPU s")
    for workload in chosen:
        print(*cells(workload, plan(workload)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
