"""Whole programs as users see them: programs from torch, run at every level and from disk."""

from __future__ import annotations

import gc
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.backend.directory import read_bundle
from spyre_mlir.debug.stored_runs import stored_program
from spyre_mlir.errors import MachineFault
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context
from tests.end_to_end.models import mlp, softmax


def test_every_level_agrees_with_torch(program: tuple[Any, Any, Any]) -> None:
    compiled, _, inputs = program
    verification = compiled.verify(*inputs, tolerance=1e-4)
    assert [v.level for v in verification.levels] == [*LEVELS, "bundle"]
    assert verification, str(verification)


def test_a_call_returns_what_the_model_returns(program: tuple[Any, Any, Any]) -> None:
    compiled, model, inputs = program
    with torch.no_grad():
        expected = model(*inputs)
    got = compiled(*inputs)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    # A call computes in 16 bits: two or three digits of the largest logit.
    assert float((got - expected).abs().max()) <= 5e-3 * float(expected.abs().max())


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_text_reads_back_as_the_same_module(program: tuple[Any, Any, Any], level: str, generic: bool) -> None:
    text = program[0].mlir(level, generic=generic)
    module = parse_module(text, make_context(), f"{level}.mlir")
    module.verify()
    assert module_text(module, generic=generic) == text
    again = parse_module(module_text(module), make_context())
    assert module.is_structurally_equivalent(again)


def test_kernels_keep_the_place_in_the_model(program: tuple[Any, Any, Any]) -> None:
    module = program[0]._lowered.modules["spyre.kernel"]
    kernels = [op for op in module.walk() if op.name in ("spyre.kernel.compute", "spyre.kernel.gather")]
    assert kernels
    assert all(".py" in str(op.location) for op in kernels)


def test_a_call_runs_the_files(tmp_path: Path) -> None:
    """One number of a JSON file changed: the call's result changes."""
    model, inputs = mlp()
    compiled = spyre_mlir.compile(model, inputs)
    before = compiled(*inputs)
    directory = compiled.bundle_directory()
    changed = 0
    for path in sorted(directory.glob("sdsc_*.json")):
        text = path.read_text()
        if '"relufwd"' in text:
            path.write_text(text.replace('"relufwd"', '"neg"'))
            changed += 1
    assert changed == 1
    compiled.reload()
    assert not torch.allclose(compiled(*inputs), before)


def test_a_wrong_extent_in_a_file_is_found(tmp_path: Path) -> None:
    model, inputs = softmax()
    directory = spyre_mlir.compile(model, inputs).save(tmp_path / "bundle")
    path = next(p for p in sorted(directory.glob("sdsc_*.json")) if "_sub" in p.read_text())
    value = json.loads(path.read_text())
    (body,) = value.values()
    (dsc,) = body["dscs_"][0].values()
    dsc["N_"]["out_"] *= 2
    path.write_text(json.dumps(value))
    with pytest.raises(spyre_mlir.SpyreError):
        run_program(stored_program(read_bundle(directory, make_context())), [inputs[0].numpy()])


@pytest.mark.usefixtures("only_new_garbage")
def test_a_bundle_runs_without_the_compiler_s_memory(tmp_path: Path) -> None:
    """Moved to another place, with everything the compiler knew gone, it gives the same bits."""
    model, inputs = mlp()
    compiled = spyre_mlir.compile(model, inputs)
    expected = compiled(*inputs).numpy()
    device = MachineOptions(numerics="device")
    shutil.move(compiled.save(tmp_path / "first"), tmp_path / "second")
    del compiled, model
    gc.collect()
    stored = read_bundle(tmp_path / "second", make_context())
    values = stored.values()
    names = [a.data["aten.name"].data for a in _main(stored.program).arg_attrs]
    arrays = [values.get(name, inputs[0].numpy()) for name in names]
    (got,) = run_program(stored_program(stored), arrays, device)
    assert np.array_equal(got.astype(np.float32), expected)


def _main(module: Any) -> Any:
    return next(op for op in module.ops if op.name == "func.func")


def test_an_unwritten_operand_is_a_fault(tmp_path: Path) -> None:
    """A launch left out: what it should have written is read by the next."""
    model, inputs = softmax()
    directory = spyre_mlir.compile(model, inputs).save(tmp_path / "bundle")
    lines = (directory / "bundle.mlir").read_text().splitlines()
    kept = [line for line in lines if 'sdsc_filename="sdsc_0.json"' not in line]
    assert len(kept) == len(lines) - 1
    (directory / "bundle.mlir").write_text("\n".join(kept))
    with pytest.raises(MachineFault, match="stale-read"):
        run_program(stored_program(read_bundle(directory, make_context())), [inputs[0].numpy()])


class RowsOfARoll(torch.nn.Module):
    """Reads two rows of eight that a roll makes of two parts, in a product that clears lanes of whole tensors."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.roll(2, 1).roll(2, 0)
        return torch.tensordot(y[:2], y[0].reshape(-1, 33).mT, 1)


def test_a_product_of_some_rows_of_a_roll() -> None:
    x = torch.randn(8, 33, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(spyre_mlir.compile(RowsOfARoll(), (x,), numerics="exact")(x), RowsOfARoll()(x))


def test_one_program_per_signature() -> None:
    lazy = spyre_mlir.compile(softmax()[0])
    for shape in ((3, 5), (2, 5), (3, 5)):
        x = torch.randn(shape)
        torch.testing.assert_close(lazy(x), torch.softmax(x, -1), rtol=1e-2, atol=1e-3)
    assert len(lazy.programs) == 2


def test_two_compilations_give_the_same_files(tmp_path: Path) -> None:
    folders = [spyre_mlir.compile(*mlp()).save(tmp_path / name) for name in ("a", "b")]
    first, second = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders)
    assert first == second


def test_concrete_addresses(tmp_path: Path) -> None:
    model, inputs = softmax()
    compiled = spyre_mlir.compile(model, inputs, addresses="concrete")
    text = (compiled.save(tmp_path / "bundle") / "bundle.mlir").read_text()
    assert "symbol_ids" not in text
    assert "input_arg" not in text


def test_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one layer: tests/end_to_end/regions has layers that are functions."""
    from examples import llama_demo

    monkeypatch.setattr(llama_demo, "LAYERS", 1)
    assert llama_demo.main() == 0
