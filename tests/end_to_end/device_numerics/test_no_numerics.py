"""Numerics ``none``: float32 as numpy computes it, and no check that depends on data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.cli.run import main
from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.machine.overflows import DL16OverflowWarning
from tests.end_to_end.models import PROGRAMS
from tests.oracles.dl16_emulation import double, rms_error

FLOAT32 = 2e-6  # root mean square, of sums of some hundreds of terms; a DLFloat16 number has 5e-4


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow(reason="the suite models runs the whole zoo")] if "layers" in n else [])
        for n in PROGRAMS
    ],
)
def test_models_agree_with_double_precision_within_float32(name: str) -> None:
    model, inputs = PROGRAMS[name]()
    compiled = spyre_mlir.compile(model, inputs, numerics="none")
    for _ in range(2):
        assert rms_error(compiled(*inputs), double(model, *inputs)) < FLOAT32
    assert compiled.log.faults == []


def code(*argv: str) -> object:
    """Exit code of spyre-run."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    return ended.value.code


class Growing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x


def test_numbers_beyond_dl16_stay(recwarn: pytest.WarningsRecorder) -> None:
    x = torch.full((2, 64), 1e10)
    result = spyre_mlir.compile(Growing(), (x,), numerics="none")(x)
    assert torch.equal(result, x * x)
    assert not [met for met in recwarn if issubclass(met.category, DL16OverflowWarning)]


def test_a_launch_that_is_left_out_goes_unnoticed() -> None:
    x = torch.randn(2, 64)
    for numerics, notices in (("device", True), ("none", False)):
        compiled = spyre_mlir.compile(nn.Sequential(nn.ReLU(), nn.Tanh()), (x,), numerics=numerics)
        bundle = compiled.bundle_directory() / "bundle.mlir"
        lines = bundle.read_text().splitlines(keepends=True)
        first = next(n for n, line in enumerate(lines) if "sdsc_execute" in line)
        bundle.write_text("".join(lines[:first] + lines[first + 1 :]))
        compiled.reload()
        if notices:
            with pytest.raises(MachineFault):
                compiled(x)
        else:
            assert torch.equal(compiled(x), torch.zeros(2, 64))


def test_a_bundle_runs_without_numerics_with_the_weights_of_the_model(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(96, 80), torch.randn(4, 96)
    compiled = spyre_mlir.compile(model, (x,))
    compiled.save(tmp_path / "with")
    compiled.save(tmp_path / "without", host_weights=False)
    np.save(tmp_path / "x.npy", x.numpy())
    given = ["--numerics", "none", "--input", f"input={tmp_path / 'x.npy'}", "--output", str(tmp_path / "out")]
    assert code(str(tmp_path / "with"), *given) == 0
    (result,) = (tmp_path / "out").glob("*.npy")
    assert rms_error(torch.from_numpy(np.load(result)), double(model, x)) < FLOAT32
    assert code(str(tmp_path / "without"), *given) == 1


def test_a_level_above_the_files_has_exact_numerics_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.randn(2, 64)
    level = tmp_path / "level.mlir"
    level.write_text(spyre_mlir.compile(nn.ReLU(), (x,)).mlir("aten"))
    assert code(str(level), "--numerics", "none") == 1
    assert "the levels above superdsc have exact numerics only" in capsys.readouterr().err


def test_a_table_keeps_its_end() -> None:
    table = torch.randn(10, 64)
    compiled = spyre_mlir.compile(nn.Embedding.from_pretrained(table), (torch.tensor([1, 2]),), numerics="none")
    assert torch.equal(compiled(torch.tensor([9, 0])), table[[9, 0]])
    with pytest.raises(InputError, match=r"holds 1,048,576 at \[1\], and aten.embedding takes 0 to 9"):
        compiled(torch.tensor([9, 1 << 20]))
