"""`spyre-compile --info` and `--graph` look at a model, with or without weights, and compile nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import spyre_mlir
from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.errors import InputError

Refused = Callable[..., str]


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, 128)
        self.norm = torch.nn.LayerNorm(64)
        self.register_buffer("gain", torch.ones(64))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = self.first(self.norm(x) * self.gain)
        odd = torch.special.bessel_j1(wide)
        odd = torch.special.bessel_j1(odd)
        return torch.softmax(odd, -1), (x + y).sum()


INPUTS = (torch.zeros(4, 64), torch.zeros(4, 64))
PARAMETERS = 64 * 128 + 128 + 64 + 64


@pytest.fixture(scope="module")
def with_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "block.pt2"
    torch.export.save(torch.export.export(Block(), INPUTS), path)
    return path


@pytest.fixture(scope="module")
def without_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "meta.pt2"
    with torch.device("meta"):
        torch.export.save(torch.export.export(Block(), tuple(torch.empty(4, 64) for _ in "xy")), path)
    return path


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize("which", ["with_weights", "without_weights"])
def test_info_in_a_pipe(which: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    path = request.getfixturevalue(which)
    assert compile_tool.run([str(path), "--info"]) == 0
    head, *found = rows(capsys.readouterr().out)
    assert head == ["what", "name", "count", "bytes", "detail"]
    by_name = {(what, name): rest for what, name, *rest in found}
    support = {
        support: (by_name["ops", support][0], set(by_name["ops", support][2].split(", ")))
        for support in ("composed", "host")
    }
    assert support["host"] == ("2", {"aten.special_bessel_j1 2"})
    assert support["composed"] == ("3", {"aten.layer_norm 1", "aten.softmax.int 1", "aten.sum 1"})
    assert {"aten.linear 1", "aten.mul.Tensor 1"} <= set(by_name["ops", "native"][2].split(", "))
    assert by_name["parameters", ""] == ["4", str(4 * PARAMETERS), f"{PARAMETERS} elements"]
    assert by_name["buffers", ""] == ["1", "256", "64 elements"]
    assert by_name["constants", ""] == ["0", "0", ""]
    assert by_name["input", "x"] == ["", "1024", "4x64 float32"]
    assert by_name["input", "y"] == ["", "1024", "4x64 float32"]
    assert [r[3:] for r in found if r[0] == "output"] == [["2048", "4x128 float32"], ["4", "scalar float32"]]
    steps = [r for r in found if r[0] == "host step"]
    lines = [number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "bessel_j1(" in text]
    places = [f"the op table has no entry for it; time unknown, at {__file__}:{line}" for line in lines[:2]]
    assert [s[1:] for s in steps] == [["aten.special_bessel_j1", "1", "", place] for place in places]


def test_info_writes_nothing(with_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert compile_tool.run([str(with_weights), "--info"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_info_in_python() -> None:
    info = spyre_mlir.info(Block().half(), tuple(x.half() for x in INPUTS))
    assert sum(p.bytes for p in info.parameters) == 2 * PARAMETERS
    assert [(t.name, t.shape, t.dtype) for t in info.inputs] == [("x", (4, 64), "float16"), ("y", (4, 64), "float16")]
    assert [s.op for s in info.host_steps] == ["aten.special_bessel_j1"] * 2
    text = str(info)
    assert "aten.special_bessel_j1 2" in text
    assert f"{2 * PARAMETERS:,}" in text


def test_a_program_with_symbols_is_described_for_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "rows.pt2")
    shapes = ({0: torch.export.Dim("rows", max=50)},)
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.zeros(4, 64),), dynamic_shapes=shapes), path)
    assert compile_tool.run([path, "--info", "--dim", "s0=33"]) == 0
    assert "input\tinput\t\t8448\t" in capsys.readouterr().out
    with pytest.raises(InputError, match="symbol s0 has no value"):
        spyre_mlir.info(path)


def test_tied_weights_count_once() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(torch.relu(self.a(x)))

    assert len(spyre_mlir.info(Tied(), (torch.zeros(2, 8),)).parameters) == 1


@pytest.mark.parametrize("name", ["block.svg", "block.mmd"])
def test_graph(name: str, with_weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    assert compile_tool.run([str(with_weights), "--graph", str(path)]) == 0
    assert capsys.readouterr().out == ""
    text = path.read_text()
    if name.endswith("svg"):
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert text.count("special_bessel_j1</text>") == 2
    else:
        assert text.startswith("flowchart TD\n")
        assert text.count(":::host") == 2


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--info", "-o", "bundle"], "--info compiles nothing, so --output means nothing beside it"),
        (["--graph", "a.svg", "--emit", "aten"], "--graph compiles nothing, so --emit means"),
        (["--info", "--levels"], "--levels means nothing"),
        (["--info", "--addresses", "concrete"], "--addresses means nothing"),
        (["--info", "--dump-dir", "d"], "--dump-dir means nothing"),
        (["--graph", "a.png"], "name a file that ends with .svg or .mmd"),
        (["--graph", "absent/a.svg"], "absent/a.svg"),
        (["--levels"], "--levels is about a bundle, and goes with -o DIR"),
        (["--device-weights-only"], "--device-weights-only is about a bundle, and goes with -o DIR"),
        (["--target", "ktir"], "--target=ktir goes with -o"),
    ],
)
def test_refused(
    words: list[str], part: str, with_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(compile_tool.run, [with_weights, *words], part)
    assert list(tmp_path.iterdir()) == []


def test_no_such_model(tmp_path: Path, refused: Refused) -> None:
    refused(compile_tool.run, [tmp_path / "absent.pt2", "--info"], "there is no such file")
