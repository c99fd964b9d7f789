"""spyre-opt does what xdsl-opt and mlir-opt users expect of it."""

import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from xdsl.tools.command_line_tool import CommandLineTool

import spyre_mlir
from spyre_mlir.cli.opt import main
from spyre_mlir.cli.support.pipeline_text import flat_pipeline
from spyre_mlir.errors import InputError

ADD = """\
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  func.return %1 : i32 loc("model.py":3:4)
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(ADD)
    return path


def test_output_is_the_program(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(program)]) == 0
    out, err = capsys.readouterr()
    assert "%0 = arith.addi %a, %a : i32" in out
    assert err == ""


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ADD.encode())))
    assert main([*arguments, "--print-op-generic"]) == 0
    assert '"arith.addi"(%a, %a)' in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags",
    [
        ["-p", "cse,dce"],
        ["--pass-pipeline", "builtin.module(cse,dce)"],
        ["--pass-pipeline=builtin.module(func.func(cse, dce))"],
    ],
)
def test_both_spellings_of_a_pipeline(flags: list[str], program: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(program), *flags]) == 0
    assert capsys.readouterr().out.count("arith.addi") == 1


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        ("", ""),
        ("builtin.module()", ""),
        ("a", "a"),
        ("builtin.module(a,b{x=1})", "a,b{x=1}"),
        ('builtin.module(a, func.func(b{x=1 y="(,)}"}, c), d)', 'a,b{x=1 y="(,)}"},c,d'),
        ("any(a)", "a"),
    ],
)
def test_flat_pipeline(nested: str, flat: str):
    assert flat_pipeline(nested) == flat


@pytest.mark.parametrize("text", ["a,", ",a", "a b", "a(b)", "builtin.module(a", "a)", "{x=1}", "a{x=1}b", "a=1"])
def test_no_pipeline(text: str):
    with pytest.raises(InputError, match="pass pipeline"):
        flat_pipeline(text)


def test_locations_are_printed_on_request(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(program), "--print-debuginfo"]) == 0
    out = capsys.readouterr().out
    assert 'func.return %1 : i32 loc("model.py":3:4)' in out
    assert f'%0 = arith.addi %a, %a : i32 loc("{program}":2:3)' in out


def test_dumps_and_times_stay_out_of_the_ir(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(program), "-p", "cse,dce", "--print-between-passes", "--time-passes"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("builtin.module {")
    assert "IR after" not in out
    assert "IR after cse:\nbuiltin.module {" in err
    assert "Pass dce took" in err


def test_split_input_counts_lines_from_the_start_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "two.mlir"
    path.write_text(f"{ADD}// -----\n{ADD}")
    assert main([str(path), "--split-input-file", "--print-debuginfo"]) == 0
    assert f'loc("{path}":8:3)' in capsys.readouterr().out


@pytest.mark.parametrize("flags", [[], ["--split-input-file"], ["--verify-diagnostics", "--split-input-file"]])
def test_versions_of_xdsl_that_open_files_as_text(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(CommandLineTool, "get_input_stream", lambda self: (io.StringIO(ADD), "mlir"))
    program = tmp_path / "program.mlir"
    program.write_text(f"{ADD}// -----\n{ADD}" if flags else ADD)
    assert main([str(program), *flags]) == 0
    assert capsys.readouterr().out.count("arith.addi") == (4 if flags else 2)


def test_output_file(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    target = tmp_path / "out.mlir"
    assert main([str(program), "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert target.read_text().startswith("builtin.module {")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mlir", "program.mlir"]


def test_failure_leaves_the_output_file_as_it_was(tmp_path: Path):
    bad = tmp_path / "bad.mlir"
    bad.write_text(f"{ADD}// -----\nfunc.func")
    target = tmp_path / "out.mlir"
    target.write_text("before")
    assert main([str(bad), "--split-input-file", "-o", str(target)]) == 1
    assert target.read_text() == "before"
    assert main([str(bad), "-o", str(tmp_path / "new.mlir")]) == 1
    assert not (tmp_path / "new.mlir").exists()


def test_version_and_help(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"spyre-opt {spyre_mlir.__version__} (xdsl {version('xdsl')})\n"
    assert main(["--help"]) == 0
    assert "--pass-pipeline" in capsys.readouterr().out


def test_starts_without_torch(program: Path):
    code = (
        "import sys; from spyre_mlir.cli.opt import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'transformers', 'numpy'} & set(sys.modules); sys.exit(code or str(heavy or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(program)], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert "arith.addi" in done.stdout


def test_the_help_names_our_passes_and_where_all_others_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "500")
    assert main(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "passes, separated by commas; ours are assign-pool, carry-in-place," in text
    assert "xDSL's are in --list-passes" in text
    assert "convert-arith-to-riscv-snitch" not in text


@pytest.mark.parametrize(("flag", "key"), [("--list-passes", "passes"), ("--list-ops", "ops")])
def test_a_list_in_a_file(flag: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag, "--json", str(tmp_path / "list.json")]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    value = json.loads((tmp_path / "list.json").read_text())
    assert [entry["name"] for entry in value[key]] == [row.partition("\t")[0] for row in rows]
    assert main([flag, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == value


def test_json_without_a_list_is_refused(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(program), "--json", str(tmp_path / "list.json")]) == 1
    assert "add --list-passes or --list-ops" in capsys.readouterr().err
    assert not (tmp_path / "list.json").exists()
