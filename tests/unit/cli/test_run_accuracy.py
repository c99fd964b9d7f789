"""`spyre-run --accuracy` on a bundle that overflows, and on what it cannot compare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.cli.run import run
from spyre_mlir.cli.run_accuracy import check_directory
from spyre_mlir.errors import InputError


class Squared(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.by = torch.nn.Parameter(torch.full((64,), 1e6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.by) * (x * self.by)


def test_the_launch_that_overflows_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.linspace(0, 1, 2 * 64, dtype=np.float32).reshape(2, 64)
    spyre_mlir.compile(Squared(), (torch.from_numpy(x),)).save(tmp_path / "bundle")
    np.save(tmp_path / "x.npy", x)
    code = run([str(tmp_path / "bundle"), "--input", f"x={tmp_path / 'x.npy'}", "--accuracy"])
    said = capsys.readouterr().out
    count = int((np.float64(x) * 1e6 > np.sqrt(2.0**32 * (2 - 2.0**-8))).sum())
    assert code == 0
    assert f"{count} results are beyond 8,573,157,376, the largest DLFloat16, first in mul at " in said
    assert "launches that add most to the error, device against exact numerics" in said


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--accuracy compares the launches of a bundle directory"):
        check_directory(tmp_path / "m.mlir")
    directory = spyre_mlir.compile(Squared(), (torch.ones(2, 64),)).save(tmp_path / "b", host_weights=False)
    with pytest.raises(InputError, match="weights in the card's form only, and exact numerics need") as refused:
        check_directory(directory)
    assert refused.value.hint == "write it with save(directory, host_weights=True)"
