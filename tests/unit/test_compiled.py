"""What the report of a model says about its last call: faults, overflows, and what depends on open questions."""

from __future__ import annotations

import gc
import inspect
import json
import weakref
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.machine.overflows import DL16OverflowWarning
from tests.functions import FunctionModel


class Steps(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x) * x


LINE = f"{Path(__file__).name}:{inspect.getsourcelines(Steps.forward)[1] + 1}"


def compiled() -> CompiledModel:
    model = spyre_mlir.compile(Steps(), (torch.zeros(4, 64),), on_fault="collect")
    assert isinstance(model, CompiledModel)
    return model


def test_before_a_call_nothing_is_known(tmp_path: Path) -> None:
    report = compiled().report(tmp_path / "r.html")
    assert report.faults is None
    assert "last call" not in str(report)
    assert "The program has not run." in (tmp_path / "r.html").read_text()


def test_a_sound_call(tmp_path: Path) -> None:
    model = compiled()
    model(torch.ones(4, 64))
    report = model.report(tmp_path / "r.html")
    assert report.faults == ()
    assert report.undecided == ("arithmetic: 1:exp",)
    assert "last call: no faults" in str(report)
    assert "depends on an open question: arithmetic: 1:exp" in str(report)
    page = (tmp_path / "r.html").read_text()
    assert "None in the last run." in page
    assert "<li>arithmetic: 1:exp</li>" in page


def test_an_overflow(tmp_path: Path) -> None:
    model = compiled()
    with pytest.warns(DL16OverflowWarning):
        model(torch.full((4, 64), 21.0))  # exp(21) is 1.3e9, and 21 times that is 2.8e10; the largest is 8.6e9
    report = model.report(tmp_path / "r.html")
    assert report.faults is not None and len(report.faults) == 1
    assert report.faults[0].startswith("overflow: 256 results of 2:mul are beyond DLFloat16, the largest 2.7")
    assert "test_compiled.py:" in report.faults[0]
    assert report.undecided == ("arithmetic: 1:exp", "overflow: 2:mul")
    assert report.faults is not None
    assert report.faults[0] in (tmp_path / "r.html").read_text()


def test_a_fault_with_the_line_of_the_model(tmp_path: Path) -> None:
    model = compiled()
    path = model.bundle_directory() / "sdsc_1.json"  # the first launch brings x to LX, this one reads it there
    value = json.loads(path.read_text())
    (dsc,) = value["1_exp"]["dscs_"][0].values()
    node = dsc["scheduleTree_"][0]
    assert node["component_"] == "lx"
    node["startAddressCoreCorelet_"]["data_"] = dict.fromkeys(node["startAddressCoreCorelet_"]["data_"], "65536")
    path.write_text(json.dumps(value))
    model(torch.ones(4, 64))
    report = model.report(tmp_path / "r.html")
    assert report.faults is not None
    assert report.faults[0].startswith(
        "stale-read: its bytes hold what was there before the bundle began; at sdsc_1.json"
    )
    assert "1:exp, Tensor0, core 0, bytes 0x2000010000.." in report.faults[0]
    assert LINE in report.faults[0]
    page = (tmp_path / "r.html").read_text()
    assert LINE in page
    assert report.faults[0].partition(":")[0] in page


def test_what_has_one_right_value_depends_on_nothing() -> None:
    def exact(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).floor().clamp(max=3.0) * (x > 0) - x.amax(0, keepdim=True).abs()

    model = spyre_mlir.compile(FunctionModel(exact), (torch.ones(64, 64),))
    model(torch.ones(64, 64))
    assert model.report().undecided == ()


def test_sums_over_several_cores_depend_on_their_order_too() -> None:
    def added(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ w).relu()

    inputs = (torch.ones(1, 4096), torch.ones(4096, 64))
    model = spyre_mlir.compile(FunctionModel(added), inputs)
    model(*inputs)
    assert {line.split(":")[0] for line in model.report().undecided} == {"arithmetic", "partial_sums"}
    assert all(line.endswith("batchmatmul") for line in model.report().undecided)


def told(model: CompiledModel) -> list[object]:
    """What a model tells of itself, but for its accuracy, which asks the model for more when it is printed."""
    found = [model.report(), model.verify(torch.ones(4, 64)), model.timeline(), model.graphs(), model.explain("exp")]
    return [*found, model.host_steps, model.replaced]


def test_what_a_model_told_outlives_it_and_its_modules_do_not() -> None:
    model = compiled()
    model(torch.ones(4, 64))
    found = told(model)
    before = [repr(one) + str(one) for one in found]
    parts = [
        weakref.ref(op) for level in ("spyre.loop", "spyre.kernel", "superdsc") for op in model._module(level).walk()
    ]
    gc.disable()
    try:
        del model
        left = [part() for part in parts if part() is not None]
    finally:
        gc.enable()
    assert len(parts) > 30
    assert left == []
    assert [repr(one) + str(one) for one in found] == before


def test_weights_of_inference_mode_may_change() -> None:
    """Torch counts no writes to them."""
    with torch.inference_mode():
        model, x = torch.nn.Linear(8, 8), torch.eye(8)
        compiled = spyre_mlir.compile(model, (x,))
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x), rtol=0.01, atol=0.01)
            model.weight.mul_(2)
            model.bias.add_(1)
