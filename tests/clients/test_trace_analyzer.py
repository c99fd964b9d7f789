"""IBM's aiu-trace-analyzer reads our traces and ideal cycles as it is, without an objection, and finds our numbers."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from tests.clients.installed import needs
from tests.functions import FunctionModel
from tests.paths import ROOT

HALF_A_CYCLE = 0.5 / 1100  # microseconds: the table has whole cycles


class Layers(nn.Module):
    """Two products, and kernels without products between and behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow, self.norm = nn.Linear(256, 512), nn.Linear(512, 256), nn.LayerNorm(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.norm(self.narrow(torch.relu(self.wide(x)))), -1)


def steps_of_the_host(x: torch.Tensor) -> torch.Tensor:
    return torch.special.bessel_j1(x @ x).relu() @ x


MODELS = {
    "layers": (Layers(), (128, 256)),
    "equal_layers": (nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(6))), (64, 256)),
    "host": (FunctionModel(steps_of_the_host), (128, 128)),
}


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    needs("aiu-trace-analyzer", "1.3", "-e '.[clients-trace]'")


def analyzed(place: Path, *words: object) -> str:
    """What acelyzer says."""
    command = [sys.executable, "-m", "acelyzer.acelyzer", *map(str, words)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    print(said)
    assert done.returncode == 0
    return said


@pytest.fixture(scope="module", params=MODELS)
def compiled(request: pytest.FixtureRequest) -> spyre_mlir.CompiledModel:
    model, shape = MODELS[request.param]
    made = spyre_mlir.compile(model.eval(), (torch.zeros(shape),), host_fallback="allow")
    assert isinstance(made, spyre_mlir.CompiledModel)
    return made


def test_traces_are_read_without_an_objection(compiled: spyre_mlir.CompiledModel, tmp_path: Path) -> None:
    compiled.trace(tmp_path / "trace.json", ideal_cycles=tmp_path / "cycles.txt")
    said = analyzed(tmp_path, "-i", "trace.json", "-c", tmp_path / "cycles.txt")
    assert "ERROR" not in said
    assert "WARNING" not in said
    assert "Adding ideal cycles table" in said


def test_kernels_do_not_overlap_in_its_verification(compiled: spyre_mlir.CompiledModel, tmp_path: Path) -> None:
    compiled.trace(tmp_path / "trace.json")
    assert "ERROR" not in analyzed(tmp_path, "-V", "-i", "trace.json")
    assert json.loads((tmp_path / "report.json").read_text())["result"] == "PASS"


def test_utilisation_is_that_of_the_report(compiled: spyre_mlir.CompiledModel, tmp_path: Path) -> None:
    compiled.trace(tmp_path / "trace.json", ideal_cycles=tmp_path / "cycles.txt")
    analyzed(tmp_path, "-i", "trace.json", "-c", tmp_path / "cycles.txt")
    timeline = compiled.timeline()
    with (tmp_path / "processed_trace_categories.csv").open() as file:
        rows = {row["Category"]: row for row in csv.DictReader(file)}
    assert float(rows["Total"]["Kernel_Time"]) == pytest.approx(timeline.kernels_us, abs=1e-4 * len(timeline.kernels))
    products = sum(k.work.product is not None for k in timeline.kernels)
    slack = 0.5e-4 + products * HALF_A_CYCLE / timeline.kernels_us
    assert float(rows["Total"]["PT_Util"]) == pytest.approx(timeline.pe_use, abs=slack)
    assert f"at {timeline.pe_use:.2%} of its peak" in str(compiled.report())
    functions = {k.launch.descriptor.op_func_name for k in timeline.kernels}
    assert functions == {name for name, row in rows.items() if int(row["Calls"])} - {"Total"}


def test_kernels_are_its_compute_events(compiled: spyre_mlir.CompiledModel, tmp_path: Path) -> None:
    compiled.trace(tmp_path / "trace.json", ideal_cycles=tmp_path / "cycles.txt")
    analyzed(tmp_path, "-i", "trace.json", "-c", tmp_path / "cycles.txt")
    events: list[dict[str, Any]] = json.loads((tmp_path / "processed_trace.pt.trace.json").read_text())["traceEvents"]
    computing = [e for e in events if e.get("args", {}).get("class") == "COMPUTE_EXEC"]
    assert len(computing) == len(compiled.timeline().runs)
    active = {e["args"]["orig_name"] for e in computing if "pt_active" in e["args"]}
    assert active == {e["args"]["orig_name"] for e in computing if e["args"]["orig_name"].startswith("batchmatmul")}
