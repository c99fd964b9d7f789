"""A planted error is named: the file, the op, the line of the model, and both values at the worst element."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr

import spyre_mlir
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.debug.bisect import BisectSession
from spyre_mlir.debug.divergence import Divergence
from spyre_mlir.debug.stored_runs import stored_program
from spyre_mlir.frontend import import_program, torch_values
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.levels.aten import run_entry
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.end_to_end.models import PROGRAMS

THIS = Path(__file__).name
torch.manual_seed(0)
X = torch.randn(64, 128)


class Mlp(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(128, 256), torch.nn.Linear(256, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.gelu(self.up(x))
        return torch.softmax(self.down(hidden), -1)


@pytest.fixture(scope="module")
def compiled() -> CompiledModel:
    torch.manual_seed(0)
    made = spyre_mlir.compile(Mlp(), (X,))
    assert isinstance(made, CompiledModel)
    return made


@pytest.fixture
def spoil(compiled: CompiledModel) -> Iterator[Callable[[str, Callable[[str], str]], Divergence]]:
    """Changes the text of a file of the bundle, and returns the divergence; the file is as before afterwards."""
    kept: dict[Path, str] = {}

    def change(name: str, how: Callable[[str], str]) -> Divergence:
        path = compiled.bundle_directory() / name
        kept[path] = path.read_text()
        changed = how(kept[path])
        assert changed != kept[path]
        path.write_text(changed)
        compiled.reload()
        outcome = compiled.verify(X)
        assert not outcome
        assert [level.level for level in outcome.levels if level.error > 1e-4] == ["bundle"]
        assert outcome.divergence is not None
        assert str(outcome.divergence) in str(outcome)
        return outcome.divergence

    yield change
    for path, text in kept.items():
        path.write_text(text)
    compiled.reload()


def starts(tensor: int, by: int) -> Callable[[str], str]:
    """Shifts every start address of one operand in the scratchpads."""

    def change(text: str) -> str:
        whole = json.loads(text)
        ((_, top),) = whole.items()
        ((_, dsc),) = top["dscs_"][0].items()
        for node in dsc["scheduleTree_"]:
            if node["ldsIdx_"] == tensor:
                data = node["startAddressCoreCorelet_"]["data_"]
                node["startAddressCoreCorelet_"]["data_"] = {k: str(int(v) + by) for k, v in data.items()}
        return json.dumps(whole)

    return change


def swap_operands(text: str) -> str:
    return re.sub(r'"(Tensor0)(-idx0)", *"(Tensor1)(-idx1)"', r'"\3\4", "\1\2"', text)


def test_all_is_well(compiled: CompiledModel) -> None:
    outcome = compiled.verify(X)
    assert outcome
    assert outcome.divergence is None


@pytest.mark.parametrize(
    ("file", "op", "how"),
    [
        ("sdsc_4.json", "add", lambda t: t.replace('"add"', '"sub"')),
        ("sdsc_2.json", "gelufwd", lambda t: t.replace('"gelufwd"', '"tanh"')),
        ("sdsc_3.json", "batchmatmul", starts(2, 256)),  # its reader finds what nobody wrote
        ("sdsc_6.json", "sub", swap_operands),
        ("sdsc_6.json", "sub", starts(0, 128)),
        ("sdsc_7.json", "exp", lambda t: t.replace('"numCoresUsed_": 32', '"numCoresUsed_": 31')),
    ],
)
def test_a_spoiled_file_is_named(
    file: str, op: str, how: Callable[[str], str], spoil: Callable[[str, Callable[[str], str]], Divergence]
) -> None:
    divergence = spoil(file, how)
    assert (divergence.level, divergence.above, divergence.file, divergence.op) == ("bundle", "superdsc", file, op)
    assert Path(divergence.source.file or "").name == THIS
    assert divergence.source.line > 0


def test_values_at_the_worst_element(
    spoil: Callable[[str, Callable[[str], str]], Divergence], compiled: CompiledModel
) -> None:
    """The bias is subtracted: torch says what the sum and the difference are."""
    divergence = spoil("sdsc_4.json", lambda t: t.replace('"add"', '"sub"'))
    model = Mlp()
    model.load_state_dict(compiled._program.values)  # pyright: ignore[reportPrivateUsage]
    with torch.no_grad():
        product = torch.nn.functional.gelu(model.up(X)) @ model.down.weight.T
    bias, found = model.down.bias.detach(), divergence.difference
    assert found is not None
    column = int(bias.abs().argmax())
    assert found.index[1] == column
    assert found.expected == pytest.approx(float(product[found.index[0], column] + bias[column]), abs=1e-5)
    assert found.got == pytest.approx(float(product[found.index[0], column] - bias[column]), abs=1e-5)


def test_another_order_of_launches_is_named(spoil: Callable[[str, Callable[[str], str]], Divergence]) -> None:
    divergence = spoil("bundle.mlir", lambda t: t.replace('"sdsc_6.json"', '"sdsc_7.json"'))
    assert divergence.reason == "launch 6 runs sdsc_7.json, expected sdsc_6.json"


def _plant(compiled: CompiledModel, level: str, number: int, change: Callable[[Any], None]) -> Divergence:
    modules = compiled._lowered.modules  # pyright: ignore[reportPrivateUsage]
    kept = modules[level]
    spoiled = kept.clone()
    kinds = {"spyre.loop": "arith.addf", "spyre.kernel": "spyre.kernel.compute"}
    for op, other in zip(kept.walk(), spoiled.walk(), strict=True):
        other.location = op.location
    change([op for op in spoiled.walk() if op.name.startswith(kinds[level])][number])
    modules[level] = spoiled
    try:
        outcome = compiled.verify(X)
    finally:
        modules[level] = kept
    assert outcome.divergence is not None
    return outcome.divergence


def test_a_wrong_kernel_is_named(compiled: CompiledModel) -> None:
    divergence = _plant(compiled, "spyre.kernel", 2, lambda op: op.properties.update(function=StringAttr("tanh")))
    assert (divergence.level, divergence.above) == ("spyre.kernel", "spyre.loop")
    assert divergence.op.startswith("spyre.kernel.compute tanh")
    assert divergence.difference is not None


def test_a_wrong_loop_is_named(compiled: CompiledModel) -> None:
    def subtract(op: Any) -> None:
        other = arith.SubfOp(*op.operands)
        op.parent.insert_op_before(other, op)
        op.results[0].replace_all_uses_with(other.result)
        op.parent.erase_op(op)

    divergence = _plant(compiled, "spyre.loop", 1, subtract)
    assert (divergence.level, divergence.above) == ("spyre.loop", "aten")
    assert "aten.linear %linear_1" in divergence.reason


def test_a_wrong_meaning_is_named(compiled: CompiledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine takes a gelu for its half; no level agrees with torch, and the aten level is where it begins."""

    def half(entry: OpEntry, arguments: Mapping[str, object]) -> Any:
        return run_entry(entry, arguments) * (0.5 if entry.name == "gelu" else 1.0)

    monkeypatch.setattr("spyre_mlir.machine.levels.aten.run_entry", half)
    divergence = compiled.verify(X).divergence
    assert divergence is not None
    assert (divergence.level, divergence.above, divergence.op) == ("aten", "torch", "aten.gelu %gelu")
    found = divergence.difference
    assert found is not None
    assert found.got == pytest.approx(found.expected / 2)


@pytest.fixture(scope="module")
def llama() -> tuple[CompiledModel, torch.Tensor]:
    model, (words,) = PROGRAMS["llama_layer"]()
    made = spyre_mlir.compile(model, (words,))
    assert isinstance(made, CompiledModel)
    return made, words


def _pairs(compiled: CompiledModel, inputs: tuple[torch.Tensor, ...]) -> dict[str, Divergence | None]:
    """What is found between every two levels of a program that is right."""
    modules = compiled._lowered.modules  # pyright: ignore[reportPrivateUsage]
    arrays = compiled._inputs(inputs, {})  # pyright: ignore[reportPrivateUsage]
    stored, walk = (
        stored_program(read_bundle(compiled.bundle_directory(), make_context())),
        BisectSession(modules, arrays),
    )
    levels = [*modules, "bundle"]
    found = {level: walk.find(level, above, stored) for above, level in pairwise(levels)}
    return {"aten": walk.unlike_torch(torch_values(modules["aten"], arrays)), **found}


@pytest.mark.slow(reason="a Llama layer takes seconds; small programs run by default")
def test_a_right_program_has_no_divergence(llama: tuple[CompiledModel, torch.Tensor]) -> None:
    """Views that are read through, kernels that write a part of a tensor, gathers: nobody is accused."""
    compiled, words = llama
    assert _pairs(compiled, (words,)) == dict.fromkeys(["aten", "spyre.loop", "spyre.kernel", "superdsc", "bundle"])


class Attention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with spyre_mlir.hint(tile={0: 4}):
            return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


@pytest.mark.parametrize(
    "loops", ["loop", pytest.param("unroll", marks=pytest.mark.slow(reason="unrolled loops take longer than loops"))]
)
def test_a_loop_over_heads(loops: Any) -> None:
    """Every launch of the loop runs four times, and keys are laid out whole: only a spoiled file is accused."""
    generator = torch.Generator().manual_seed(0)
    inputs = tuple(torch.rand(4, 64, 64, generator=generator) for _ in range(3))
    program, options = import_program(Attention(), inputs), CompileOptions(loops=loops, inputs="default")
    passes = options.passes() | {"plan": {"shortest_us": 0}}
    lowered = lower(program.module, make_context(replace(SPYRE, lx_usable_bytes=768)), options=passes)
    assert any(op.name == "scf.for" for op in lowered.modules["spyre.kernel"].walk())
    compiled = CompiledModel(program, lowered, options)
    assert not any(_pairs(compiled, inputs).values())
    path = next(p for p in compiled.bundle_directory().glob("sdsc_*.json") if '"exp"' in p.read_text())
    path.write_text(path.read_text().replace('"exp"', '"sigmoid"'))
    compiled.reload()
    divergence = compiled.verify(*inputs).divergence
    assert divergence is not None
    assert (divergence.file, divergence.op) == (path.name, "exp")


@pytest.mark.slow(reason="a Llama layer takes seconds; small programs run by default")
@pytest.mark.parametrize("seed", range(4))
def test_a_spoiled_file_of_a_llama_layer_is_named(seed: int, llama: tuple[CompiledModel, torch.Tensor]) -> None:
    """One operand's order of dims is another; the seeds are ones that change the logits."""
    compiled, words = llama
    random = np.random.default_rng(100 + seed)
    files = sorted(compiled.bundle_directory().glob("sdsc_*.json"))
    while True:
        path = files[int(random.integers(len(files)))]
        text = path.read_text()
        whole = json.loads(text)
        ((_, top),) = whole.items()
        ((_, dsc),) = top["dscs_"][0].items()
        node = dsc["scheduleTree_"][-1]
        node["layoutDimOrder_"].reverse()
        path.write_text(json.dumps(whole))
        compiled.reload()
        try:
            outcome = compiled.verify(words)
        finally:
            path.write_text(text)
            compiled.reload()
        if outcome:
            continue  # extents of one: the same program
        assert outcome.divergence is not None
        assert outcome.divergence.file == path.name
        return
