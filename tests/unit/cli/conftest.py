"""A saved program and its bundle, made once; tests copy what they spoil."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import run as run_tool


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "layer.pt2"
    torch.export.save(torch.export.export(Layer(), (torch.zeros(64, 128),)), path)
    return path


@pytest.fixture(scope="session")
def pristine(saved: Path) -> Path:
    directory = saved.parent / "bundle"
    assert compile_tool.run([str(saved), "-o", str(directory)]) == 0
    return directory


@pytest.fixture
def bundle(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "bundle")


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a tool that must fail, and returns its message."""

    def run(tool: Callable[[list[str]], int], arguments: list[object], *parts: str, code: int = 1) -> str:
        capsys.readouterr()
        got = tool([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert (got, out) == (code, ""), err
        assert err.startswith("error: ")
        assert "Traceback" not in err
        assert "internal error" not in err
        for part in parts:
            assert part in err
        return err

    return run


@pytest.fixture
def spyre_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a text on negative numbers; the tool's exit code and both its outputs."""

    def run(text: str, *options: str, value: float = -1.0) -> tuple[int, str, str]:
        path, given = tmp_path / "planted.mlir", tmp_path / "x.npy"
        path.write_text(text)
        np.save(given, np.full((4, 64), value))
        code = run_tool.run([str(path), "--input", f"x={given}", *options])
        shown, errors = capsys.readouterr()
        return code, shown, errors

    return run
