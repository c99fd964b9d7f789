"""`spyre-run` of models in parts: the whole model by the names of its inputs, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.cli import run as run_tool
from spyre_mlir.parted.model import PartedModel

Refused = Callable[..., str]


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> dict[str, object]:
        rows = x[mask] * 2
        halves = torch.cond(x.sum() > 0, lambda t: t / 2, lambda t: t - 1, (rows,))
        return {"rows": rows, "halves": halves, "count": rows.shape[0]}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    example = torch.ones(4, 8), torch.tensor([True, True, False, True])
    symbols = ({0: torch.export.Dim("n", min=2, max=64)}, {0: torch.export.Dim("n", min=2, max=64)})
    made = spyre_mlir.compile(Chosen(), example, dynamic_shapes=symbols, host_fallback="allow")
    assert isinstance(made, PartedModel)
    return made.save(tmp_path_factory.mktemp("model") / "parts")


def given(directory: Path, **arrays: np.ndarray) -> list[object]:
    for name, value in arrays.items():
        np.save(directory / f"{name}.npy", value)
    return [text for name in arrays for text in ("--input", f"{name}={directory / name}.npy")]


@pytest.mark.parametrize("mask", [[1, 0, 1, 1, 0], [0, 0, 0], [1, 1]])
def test_results_are_eager(mask: list[int], parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, chosen = torch.randn(len(mask), 8, generator=torch.Generator().manual_seed(3)), torch.tensor(mask).bool()
    wanted = Chosen()(x, chosen)
    inputs = given(tmp_path, x=x.numpy(), mask=chosen.numpy())
    argv = [parts, *inputs, "--numerics", "exact", "--output", tmp_path / "out", "--json", tmp_path / "run.json"]
    assert run_tool.run([str(word) for word in argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.partition(":")[0] for line in out.splitlines()] == list(wanted)
    for name, value in wanted.items():
        got = np.load(tmp_path / "out" / f"{name}.npy")
        assert got.shape == np.shape(value)
        np.testing.assert_allclose(got, value, rtol=1e-6)
    assert '"count"' in (tmp_path / "run.json").read_text()


def test_sizes_are_those_of_the_files(parts: Path, tmp_path: Path, refused: Refused) -> None:
    refused(run_tool.run, [parts], "the input 'x' has a size of the caller's choice", "--input x=FILE.npy")
    inputs = given(tmp_path, x=np.ones((3, 8), np.float32), mask=np.ones(3))
    refused(run_tool.run, [parts, *inputs], "the input 'mask' holds float64, expected whole numbers")
    unknown = "--input", f"y={tmp_path / 'x.npy'}"
    refused(run_tool.run, [parts, *unknown], "no argument 'y'", "its arguments are x, mask")


@pytest.mark.parametrize("flags", [("--bisect",), ("--time",), ("--probe", "list"), ("--on-fault", "collect")])
def test_what_is_about_one_program_is_refused_by_name(flags: tuple[str, ...], parts: Path, refused: Refused) -> None:
    refused(run_tool.run, [parts, *flags], flags[0], "about one program", "part_0")


def test_a_program_that_was_changed_is_refused(parts: Path, tmp_path: Path, refused: Refused) -> None:
    spoiled = shutil.copytree(parts, tmp_path / "spoiled")
    with (spoiled / "program.pt2").open("ab") as file:
        file.write(b" ")
    refused(run_tool.run, [spoiled], "program.pt2")
