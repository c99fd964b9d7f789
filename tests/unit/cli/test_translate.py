"""spyre-translate loses nothing, either way, and refuses what is no SuperDSC."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli.translate import main
from tests.paths import DATA

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
        ("", ["bad.json:1:1", "got 'the end of the file'", "try: name a SuperDSC file"]),
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
    refused(main, [ADD], "--superdsc-to-mlir --mlir-to-superdsc --target --check is required", "spyre-translate --help")
    refused(main, ["--superdsc-to-mlir", "--mlir-to-superdsc", ADD], "not allowed with")


def test_a_bundle_there_and_back(pristine: Path, tmp_path: Path, capsys: Capture) -> None:
    mlir, back, again = tmp_path / "x.mlir", tmp_path / "back", tmp_path / "again"
    assert main(["--superdsc-to-mlir", str(pristine), "-o", str(mlir)]) == 0
    assert main(["--mlir-to-superdsc", str(mlir), "-o", str(back)]) == 0
    public = sorted(path.name for path in pristine.iterdir() if path.name.startswith(("bundle", "sdsc_")))
    assert sorted(path.name for path in back.iterdir()) == public
    for name in public:
        assert (back / name).read_text() == (pristine / name).read_text()
    assert main(["--check", str(back)]) == 0
    assert capsys.readouterr().out == "0 errors, 0 warnings\n"
    generic = tmp_path / "generic.mlir"
    assert main(["--superdsc-to-mlir", str(pristine), "-o", str(generic), "--print-op-generic"]) == 0
    assert main(["--mlir-to-superdsc", str(generic), "-o", str(again)]) == 0
    assert {path.name: path.read_text() for path in again.iterdir()} == {
        path.name: path.read_text() for path in back.iterdir()
    }


def test_a_bundle_of_others_with_two_files_alike(tmp_path: Path) -> None:
    """File names say nothing about root keys, a file is run twice, and one is not run at all."""
    source, mlir, back = tmp_path / "a", tmp_path / "x.mlir", tmp_path / "b"
    source.mkdir()
    launch = 'sdscbundle.sdsc_execute () {{sdsc_filename="{0}"}}'
    lines = "\n".join(launch.format(name) for name in ("first.json", "second.json", "first.json"))
    (source / "bundle.mlir").write_text(f"func.func @sdsc_bundle() {{\n{lines}\nfunc.return\n}}")
    for name in ("first.json", "second.json", "sdsc_9.json"):
        (source / name).write_bytes(ADD.read_bytes())
    assert main(["--superdsc-to-mlir", str(source), "-o", str(mlir)]) == 0
    assert main(["--mlir-to-superdsc", str(mlir), "-o", str(back)]) == 0
    assert sorted(path.name for path in back.iterdir()) == ["bundle.mlir", "first.json", "sdsc_9.json", "second.json"]
    assert spelled(back / "second.json") == spelled(ADD) == spelled(back / "sdsc_9.json")
    assert (back / "bundle.mlir").read_text().count("first.json") == 2


def test_bundles_that_cannot_be_written(saved: Path, tmp_path: Path, refused: Refused, capsys: Capture) -> None:
    assert compile_tool.run([str(saved), "--emit", "superdsc"]) == 0
    whole, clash = tmp_path / "whole.mlir", tmp_path / "clash.mlir"
    whole.write_text(capsys.readouterr().out)
    refused(main, ["--mlir-to-superdsc", whole, "-o", tmp_path / "new"], "@sdsc_bundle", "spyre-compile -o DIR")
    path = tmp_path / "one"
    path.mkdir()
    (path / "bundle.mlir").write_text("func.func @sdsc_bundle() {\nfunc.return\n}")
    (path / "sdsc_0.json").write_bytes(ADD.read_bytes())
    assert main(["--superdsc-to-mlir", str(path), "-o", str(clash)]) == 0
    clash.write_text(clash.read_text().replace("sdsc_0.json", "../sdsc_0.json"))
    refused(main, ["--mlir-to-superdsc", clash, "-o", tmp_path / "new"], "../sdsc_0.json", "superdsc.file")
    assert not (tmp_path / "new").exists()
    (path / "bundle.mlir").write_text("func.func @sdsc_bundle(")
    refused(main, ["--superdsc-to-mlir", path], "bundle.mlir:1:", "no MLIR")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    clash.write_text(clash.read_text().replace("../sdsc_0.json", "sdsc_0.json"))
    refused(main, ["--mlir-to-superdsc", clash, "-o", tmp_path / "full"], "neither empty nor a bundle")
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"


def test_check(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    wrong = ADD.read_text().replace('"wordLength": 2', '"wordLength": 4', 1)
    (tmp_path / "wrong.json").write_text(wrong)
    assert main(["--check", str(tmp_path / "wrong.json")]) == 1
    out = capsys.readouterr().out
    assert (
        f"error: word-length: {tmp_path}/wrong.json: $.0_add.dscs_[0].add.labeledDs_[0].wordLength: expected 2" in out
    )
    assert out.endswith("1 error, 0 warnings\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(wrong.encode())))
    assert main(["--check"]) == 1
    assert "error: word-length: <stdin>: " in capsys.readouterr().out
    assert main(["--check", str(DATA / "superdsc_real" / "09_backend_written_sdsc_dcg.json")]) == 0
    assert capsys.readouterr().out.endswith("0 errors, 11 warnings\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["--check", str(tmp_path / "wrong.json")]) == 1
    heading, *table, last = capsys.readouterr().out.splitlines()
    assert f"{tmp_path}/wrong.json" in heading and last == "1 error, 0 warnings"
    assert any("word-length" in row and "expected" not in row and "error" in row for row in table)
    refused(main, ["--check", tmp_path / "none"], "no such file or directory", "none")
    refused(main, ["--check", ADD, "-o", tmp_path / "x"], "--check writes no file")


def test_findings_in_a_file(tmp_path: Path, refused: Refused, capsys: Capture) -> None:
    wrong, file = tmp_path / "wrong.json", tmp_path / "found.json"
    wrong.write_text(ADD.read_text().replace('"wordLength": 2', '"wordLength": 4'))
    assert main(["--check", str(wrong), "--json", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    value = json.loads(file.read_text())
    assert lines[-1] == f"{value['errors']} errors, 0 warnings" and value["errors"] == len(value["findings"]) > 0
    assert main(["--check", str(wrong), "--json", "-"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == value and err.splitlines() == lines
    refused(main, ["--check", wrong, "--json", tmp_path / "no" / "found.json"], "found.json: No such file")
    refused(main, ["--superdsc-to-mlir", wrong, "--json", file], "--json is for the findings of --check", "add --check")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--check", "--split"], ["--split is about KTIR", "add --target=ktir"]),
        (["--superdsc-to-mlir", "--older-spaces"], ["--older-spaces is about KTIR", "leave out --older-spaces"]),
        (["--check", "--print-op-generic"], ["--print-op-generic is about", "add --superdsc-to-mlir"]),
        (["--target=ktir", "--print-op-generic"], ["--print-op-generic is about", "add --superdsc-to-mlir"]),
    ],
)
def test_options_of_another_direction(words: list[str], parts: list[str], pristine: Path, refused: Refused) -> None:
    refused(main, [*words, pristine], *parts)
