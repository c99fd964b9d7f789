"""A bundle in memory is the bundle that its files hold: descriptors, names of tensors, weights, results, faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.backend.held import HeldBundle
from spyre_mlir.backend.split import launches
from spyre_mlir.backend.stored import StoredBundle, read_bundle
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.debug.stored_runs import held_program, stored_program
from spyre_mlir.dialects.places import source_of
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.universe import make_context
from tests.end_to_end.regions.stacks import decode_step, stack
from tests.functions import FunctionModel

Built = tuple[nn.Module, tuple[Tensor, ...]]


def _with_host_step() -> Built:
    def sorted_rows(x: Tensor) -> Tensor:
        return torch.cumprod(x.exp(), 0).sum(-1)

    return FunctionModel(sorted_rows), (torch.linspace(-1, 1, 256).reshape(4, 64),)


def _half() -> Built:
    model = nn.Sequential(nn.Linear(64, 100), nn.GELU(), nn.Linear(100, 64)).half()
    return model, (torch.linspace(-2, 2, 320).reshape(5, 64).half(),)


MODELS: dict[str, Callable[[], Built]] = {
    "regions": lambda: stack(1.5, 1.5),
    "decode step": lambda: decode_step(1),
    "host step": _with_host_step,
    "half": _half,
    "product": lambda: (nn.Linear(64, 128, bias=False), (torch.linspace(-1, 1, 128).reshape(2, 64),)),
}


@dataclass(frozen=True)
class Both:
    """A compiled model, and its bundle in memory and read from disk."""

    made: CompiledModel
    inputs: tuple[Tensor, ...]
    held: HeldBundle
    stored: StoredBundle


@pytest.fixture(scope="module", params=[*((name, "symbolic") for name in MODELS), ("product", "concrete")], ids=str)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    name, addresses = request.param
    model, inputs = MODELS[name]()
    made = spyre_mlir.compile(model, inputs, addresses=addresses, cache=False)
    assert isinstance(made, CompiledModel)
    held, _ = made._bundle.prepared()  # pyright: ignore[reportPrivateUsage] # what a call runs
    assert isinstance(held, HeldBundle)
    return Both(made, inputs, held, read_bundle(made.save(tmp_path_factory.mktemp("held") / "b"), make_context()))


def test_it_says_what_the_files_say(both: Both) -> None:
    held, stored = both.held, both.stored
    there, here = launches(stored.bundle), launches(held.bundle)
    assert [op.sdsc_filename.data for op in here] == [op.sdsc_filename.data for op in there]
    assert [held.tensors.get(op, ()) for op in here] == [op.tensors for op in there]
    places = [(source_of(a.location), source_of(b.location)) for a, b in zip(here, there, strict=True)]
    assert all(one == other for one, other in places if one)
    for name in {op.sdsc_filename.data for op in here}:
        one, other = held.descriptor(name), stored.descriptor(name)
        assert one == other
        assert one.slices == other.slices
        assert held.descriptor(name) is one
    assert held.weight_names() == stored.weight_names()
    weights = held.weights()
    assert weights.keys() == stored.weights().keys()
    for number, make in stored.weights().items():
        expected, got = make(), weights[number]()
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("numerics", ["device", "exact"])
def test_runs_give_the_same_bits(numerics: Any, both: Both) -> None:
    made, inputs, held, stored = both.made, both.inputs, both.held, both.stored
    names = held.weight_names() if numerics == "device" else set[str]()
    given = made._given(inputs, {})  # pyright: ignore[reportPrivateUsage] # inputs, weights and buffers by name
    arrays = [
        made._values[name] if value is None and name not in names else value  # pyright: ignore[reportPrivateUsage]
        for name, value in given.items()
    ]
    logs = FaultLog("collect"), FaultLog("collect")
    options = MachineOptions(numerics=numerics, on_fault="collect")
    here = run_program(held_program(held), arrays, options, log=logs[0])
    there = run_program(stored_program(stored), arrays, options, log=logs[1])
    assert len(here) == len(there) > 0
    for one, other in zip(here, there, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert logs[0].lines() == logs[1].lines()
    assert logs[0].depends == logs[1].depends


def test_a_modified_weight_is_sent_again() -> None:
    model = nn.Linear(64, 64, bias=False)
    x = torch.eye(64)
    made = spyre_mlir.compile(model, (x,))
    with torch.no_grad():
        model.weight.fill_(0.5)
        made(x)
        model.weight.fill_(2.0)
    assert torch.equal(made(x), torch.full((64, 64), 2.0))


def test_files_that_were_asked_for_are_run() -> None:
    made = spyre_mlir.compile(nn.ReLU(), (torch.ones(4, 64),))
    assert isinstance(made, CompiledModel)
    x = torch.full((4, 64), -3.0)
    assert torch.equal(made(x), torch.zeros(4, 64))
    (file,) = (path for path in made.bundle_directory().glob("sdsc_*.json") if "relufwd" in path.read_text())
    file.write_text(file.read_text().replace("relufwd", "neg"))
    assert torch.equal(made(x), -x)
