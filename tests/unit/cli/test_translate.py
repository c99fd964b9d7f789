"""spyre-translate loses nothing, either way, and refuses what is no SuperDSC."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli.translate import main

DATA = Path(__file__).parents[2] / "data"
FILES = sorted(path for path in DATA.glob("superdsc_*/*.json") if "segment_size" not in path.name)
ADD = DATA / "superdsc_worked" / "a1_add_128x256_1core.json"
Refused = Callable[..., str]
Capture = pytest.CaptureFixture[str]


def spelled(path: Path) -> str:
    """Values and key order of a file; only white space is lost."""
    return json.dumps(json.loads(path.read_text()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("flags", [[], ["--print-op-generic"]], ids=["custom", "generic"])
def test_there_and_back(path: Path, flags: list[str], tmp_path: Path) -> None:
    mlir, back = tmp_path / "x.mlir", tmp_path / "x.json"
    assert main(["--superdsc-to-mlir", str(path), "-o", str(mlir), *flags]) == 0
    assert "superdsc.sdsc" in mlir.read_text()
    assert main(["--mlir-to-superdsc", str(mlir), "-o", str(back)]) == 0
    assert spelled(back) == spelled(path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.json", "x.mlir"]


def test_there_are_files_of_both_sources() -> None:
    assert {path.parent.name for path in FILES} == {"superdsc_real", "superdsc_worked"}


@pytest.mark.parametrize("names", [[], ["-"], ["-", "-o", "-"]])
def test_streams(names: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ADD.read_bytes())))
    assert main(["--superdsc-to-mlir", *names]) == 0
    text = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["--mlir-to-superdsc", *names]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(ADD.read_text())


def test_emitted_file(pristine: Path, capsys: Capture) -> None:
    assert main(["--superdsc-to-mlir", str(pristine / "sdsc_0.json")]) == 0
    assert "superdsc.compute pt batchmatmul" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"a": ', ["bad.json:1:", "expected JSON"]),
        ("[]", ["bad.json: $", "one root key"]),
        ('{"a": {"dscs_": [], "x": 1, "x": 2}}', ["bad.json", "got 'x' twice"]),
        ('{"a": {"dscs_": 1}}', ["$.a.dscs_", "expected a list, got 1"]),
    ],
)
def test_bad_json(text: str, parts: list[str], tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "bad.json").write_text(text)
    refused(main, ["--superdsc-to-mlir", tmp_path / "bad.json", "-o", tmp_path / "x.mlir"], *parts)
    assert not (tmp_path / "x.mlir").exists()


def test_bad_mlir(saved: Path, tmp_path: Path, refused: Refused, capsys: Capture) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text("superdsc.sdsc @")
    refused(main, ["--mlir-to-superdsc", path], "bad.mlir:1:", "^")
    path.write_text("func.func @f() {\n  func.return\n}")
    refused(main, ["--mlir-to-superdsc", path], "bad.mlir", "this module has 0", "superdsc level")
    assert compile_tool.run([str(saved), "--emit", "superdsc"]) == 0
    path.write_text(capsys.readouterr().out)
    refused(main, ["--mlir-to-superdsc", path], "this module has 3: @0_batchmatmul", "a file of its own")


def test_files(tmp_path: Path, refused: Refused) -> None:
    refused(main, ["--superdsc-to-mlir", tmp_path / "none.json"], "none.json: No such file")
    refused(main, ["--superdsc-to-mlir", tmp_path], "No such file", f"{tmp_path}/bundle.mlir")
    refused(main, ["--superdsc-to-mlir", ADD, "-o", tmp_path], f"{tmp_path}: Is a directory")
    (tmp_path / "binary.json").write_bytes(b"{\xff}")
    refused(main, ["--superdsc-to-mlir", tmp_path / "binary.json"], "not UTF-8", "binary.json:1:2")


def test_wrong_usage(refused: Refused) -> None:
    refused(main, [ADD], "--superdsc-to-mlir --mlir-to-superdsc --check is required", "spyre-translate --help")
    refused(main, ["--superdsc-to-mlir", "--mlir-to-superdsc", ADD], "not allowed with")
