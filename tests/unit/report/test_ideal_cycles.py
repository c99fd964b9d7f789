"""The table of ideal cycles: what IBM's analyzer parses, by hand from its patterns, and the arithmetic of the peak."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.report.ideal_cycles import ideal_cycles, ideal_cycles_text, kernel_name

# As aiu-trace-analyzer 1.3 has them, in RCUUtilizationContext.
START, DATA, END = r" Ideal/Total Cycles ", r"^[_\-a-zA-Z\d]+ +\d+ *$", r"====== Perf Summary End ======"
# 1024 multiply-adds a cycle at 1.5 GHz on each of 32 cores, the published peak; 1100 cycles a microsecond.
MACS_PER_US = 1024 * 1500 * 32


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    made = spyre_mlir.compile(nn.Sequential(nn.Linear(256, 512), nn.ReLU()), (torch.zeros(128, 256),))
    assert isinstance(made, spyre_mlir.CompiledModel)
    return made.timeline()


def test_lines_are_what_the_analyzer_looks_for(timeline: Timeline) -> None:
    first, *rows, last = ideal_cycles_text(timeline).splitlines()
    assert re.search(START, first) and re.search(END, last)
    assert all(re.search(DATA, row) for row in rows)
    assert rows == ["batchmatmul_sdsc_0-opCatbatchmatmul 375", "add_sdsc_1-opCatadd 0", "relufwd_sdsc_2-opCatrelufwd 0"]


def test_cycles_are_of_the_peak(timeline: Timeline) -> None:
    product, add, _ = timeline.kernels
    assert ideal_cycles(product, timeline) == int(128 * 256 * 512 / MACS_PER_US * 1100 + 0.5) == 375
    assert ideal_cycles(add, timeline) == 0
    assert timeline.pe_use == pytest.approx(128 * 256 * 512 / MACS_PER_US / timeline.kernels_us)


def test_a_kernel_that_runs_again_has_a_line_again(softmax_timeline: Timeline) -> None:
    twice = Timeline(**(vars(softmax_timeline) | {"runs": softmax_timeline.runs * 2}))
    rows = ideal_cycles_text(twice).splitlines()[1:-1]
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :]
    assert len(rows) == 2 * len(softmax_timeline.runs)


def test_names_tell_kernels_of_a_function_apart(softmax_timeline: Timeline) -> None:
    names = [kernel_name(kernel) for kernel in softmax_timeline.kernels]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+_sdsc_\d+", name) for name in names)
