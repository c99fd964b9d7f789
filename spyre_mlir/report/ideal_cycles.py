"""Ideal cycles of the kernels of a trace, as IBM's aiu-trace-analyzer reads them: `acelyzer -i TRACE -c FILE`.

The format is that of a performance summary in a compiler log, as version 1.3 of the analyzer parses it: a line per run
of a kernel, with its name, its category and its cycles. The analyzer divides cycles by its own clock, so they are
cycles of that clock for the time that the PE arrays need at their peak.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from spyre_mlir.hw.cost import arithmetic_us
from spyre_mlir.machine.bundle.timeline import TimedKernel, Timeline

CLOCK_MHZ = 1100  # of the analyzer, unless it is called with --freq
_START, _END = " Ideal/Total Cycles ", "====== Perf Summary End ======"


def kernel_name(kernel: TimedKernel) -> str:
    """Return the name of a kernel in traces and in the table: its function and its file.

    The analyzer takes letters, digits, dashes and underscores, and looks kernels up by name.
    """
    descriptor = kernel.launch.descriptor
    return re.sub(r"[^\w-]", "_", f"{descriptor.op_func_name}_{PurePath(kernel.launch.file).stem}", flags=re.ASCII)


def ideal_cycles(kernel: TimedKernel, timeline: Timeline) -> int:
    """Return the cycles that one run of a kernel takes if it does its products at the peak of the whole card."""
    return round(arithmetic_us(kernel.work.macs, spec=timeline.spec) * CLOCK_MHZ)


def ideal_cycles_text(timeline: Timeline) -> str:
    """Return the table, in the order of the runs, by which the analyzer finds the table of a trace."""
    lines = [_START]
    for number, _, _ in timeline.runs:
        kernel = timeline.kernels[number]
        category = kernel.launch.descriptor.op_func_name
        lines.append(f"{kernel_name(kernel)}-opCat{category} {ideal_cycles(kernel, timeline)}")
    return "\n".join([*lines, _END, ""])
