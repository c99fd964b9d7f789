"""Python code of a host program, read and run: the file beside the bundle gives what the model gives."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.cli import compile as compile_tool


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).relu()


class Steps(nn.Module):
    """Weights, a buffer that calls change, a step of the host between two launches, and several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Part(), Part()])
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> dict[str, Any]:
        self.count.add_(1)
        for layer in self.layers:
            x = layer(x)
        x = torch.special.bessel_j1(x) * scale
        return {"result": x, "number": 3, "largest": x.argmax(-1), "count": self.count * 2}


X, SCALE = torch.linspace(-2, 2, 8 * 64).reshape(8, 64), torch.linspace(1, 2, 64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tool makes of a saved program: the bundle, and beside it the host code."""
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("host")
    torch.export.save(torch.export.export(Steps().eval(), (X, SCALE)), place / "m.pt2")
    allow = ["--host-fallback", "allow"]
    assert compile_tool.run([str(place / "m.pt2"), "-o", str(place / "bundle"), *allow]) == 0
    return place


@pytest.fixture(scope="module")
def code(folder: Path) -> str:
    from contextlib import redirect_stdout
    from io import StringIO

    with redirect_stdout(StringIO()) as out:
        assert compile_tool.run([str(folder / "m.pt2"), "--emit", "python", "--host-fallback", "allow"]) == 0
    return out.getvalue()


def test_every_step_is_a_line_and_kernels_name_function_module_and_source(code: str) -> None:
    lines = [line.strip() for line in code.splitlines()]
    assert sum(" = card.to_device(" in line for line in lines) >= 6  # x, scale, count, two weights, two biases
    assert sum(line.startswith("card.launch(") for line in lines) == 2
    (host,) = [line for line in lines if "card.host(" in line]
    assert "special_bessel_j1" in host and "test_host_text.py:" in host
    products = [line.split() for line in lines if "batchmatmul" in line]
    assert [words[3] for words in products] == ["layers.0.inner", "layers.1.inner"]
    assert all(words[0] == "#" and words[1].endswith(".json") and ".py:" in words[4] for words in products)
    assert lines.index(next(x for x in lines if "batchmatmul" in x)) < lines.index(
        next(x for x in lines if x.startswith("card.launch("))
    )


def test_the_file_gives_what_eager_torch_gives(folder: Path, code: str, python: list[str]) -> None:
    torch.manual_seed(0)
    wanted = Steps().eval()(X, SCALE)
    (folder / "host.py").write_text(code)
    torch.save((X, SCALE), folder / "x.pt")
    done = subprocess.run(
        [*python, str(folder / "host.py"), str(folder / "x.pt")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    got = torch.load(folder / "x.out.pt")
    torch.testing.assert_close(got["result"], wanted["result"], rtol=0, atol=0.01)
    torch.testing.assert_close(got["count"], wanted["count"])
    assert got["number"] == 3
    same = spyre_mlir.load(folder / "bundle")(X, SCALE)
    assert all(torch.equal(torch.as_tensor(got[name]), torch.as_tensor(same[name])) for name in got)


def test_without_inputs_the_file_draws_some(folder: Path, code: str, python: list[str]) -> None:
    (folder / "host.py").write_text(code)
    done = subprocess.run([*python, str(folder / "host.py")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "'number': 3" in done.stdout


def test_code_and_bundle_from_python_go_together(tmp_path: Path, python: list[str]) -> None:
    class Lambda(nn.Module):
        """Its arguments are words of Python and names of the file."""

        def forward(self, card: torch.Tensor, torch: torch.Tensor) -> torch.Tensor:
            return card + torch

    compiled: Any = spyre_mlir.compile(Lambda(), (X, X))
    compiled.save(tmp_path / "b")
    (tmp_path / "host.py").write_text(compiled.python("b"))
    torch.save((X, X), tmp_path / "x.pt")
    subprocess.run([*python, str(tmp_path / "host.py"), str(tmp_path / "x.pt")], check=True)
    torch.testing.assert_close(torch.load(tmp_path / "x.out.pt"), X * 2, rtol=1e-2, atol=1e-2)
