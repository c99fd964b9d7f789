"""`spyre-compile` of programs in which data decides sizes: the parts, their text, and what they have no answer to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

Refused = Callable[..., str]


class Centred(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x[x[:, 0] > 0]
        return rows - rows.mean(0)


@pytest.fixture(scope="module")
def centred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "centred.pt2"
    torch.export.save(torch.export.export(Centred(), (torch.ones(4, 8),)), path)
    return path


def rows(count: int) -> torch.Tensor:
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(count))
    x[:, 0] = torch.tensor([1.0 if row < count else -1.0 for row in range(4)])
    return x


@pytest.mark.parametrize("flags", [(), ("--max-size", "3"), ("--max-size", "known")])
def test_parts_are_written_and_are_eager(
    flags: tuple[str, ...], centred: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_tool.run([str(centred), "-o", str(tmp_path / "parts"), *flags]) == 0
    out, err = capsys.readouterr()
    once = "once for u0 <= " + ("4" if "known" in flags else "3")
    assert (once in out) == bool(flags)
    assert "host: %index = aten.index.Tensor" in out
    assert err.startswith("warning: a step of this program will run on the host")
    with pytest.warns(HostStepWarning):
        loaded = spyre_mlir.load(tmp_path / "parts", numerics="exact")
    for count in (1, 3):
        x = rows(count)
        assert torch.allclose(loaded(x), Centred()(x), atol=1e-6)


def test_the_aten_level_is_printed(centred: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run([str(centred), "--emit", "aten", "--host-fallback", "allow"]) == 0
    out, err = capsys.readouterr()
    assert out.index("@Centred_0") < out.index("// the host: %index = aten.index.Tensor") < out.index("@Centred_1")
    assert err == ""


@pytest.mark.parametrize(
    "flags",
    [
        ("--emit", "superdsc"),
        ("--target", "ktir", "-o", "x.mlir"),
        ("--json", "x.json"),
        ("--dim", "s0=3"),
        ("--dump-dir", "d"),
    ],
)
def test_flags_about_one_program_are_refused_by_name(
    flags: tuple[str, ...], centred: Path, tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(compile_tool.run, [centred, *flags], flags[0], "is about programs of known sizes", "try: leave it out")
    assert list(tmp_path.iterdir()) == []


def test_a_bound_of_a_program_without_such_sizes_is_refused(saved: Path, refused: Refused) -> None:
    refused(compile_tool.run, [saved, "--max-size", "8"], "max_size is of sizes that data decides")
    refused(compile_tool.run, [saved, "--max-size", "none"], "max_size must be a number above 0")


def test_host_steps_may_be_refused(centred: Path, refused: Refused) -> None:
    refused(compile_tool.run, [centred, "--host-fallback", "error"], "aten.index.Tensor", code=2)
