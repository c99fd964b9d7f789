"""`spyre-opt --reduce` on a failure planted in a pass, and `--reduce-test` with a command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from spyre_mlir.cli import opt

PROGRAM = """
func.func @main(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>) -> tensor<4x64xf32> {
  %0 = aten.mm(%x, %w) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %1 = aten.relu(%0) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %2 = aten.exp(%1) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %2 : tensor<4x64xf32>
}
"""
SMALL = """\
builtin.module {
  func.func @main(%x: tensor<1x1xf32>) {
    %0 = aten.relu(%x) : (tensor<1x1xf32>) -> tensor<1x1xf32>
    func.return
  }
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass with a bug, and with another one on a smaller program."""

    def fail(self: object, context: Context, module: ModuleOp) -> None:
        names = {op.name for op in module.walk()}
        if "aten.exp" in names and "aten.relu" not in names:
            raise KeyError("another bug")
        if "aten.relu" in names:
            raise KeyError("planted")

    monkeypatch.setattr(CommonSubexpressionElimination, "apply", fail)


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("text", ["planted", "KeyError: 'planted'"])
def test_a_planted_failure(text: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([str(program), "--cse", "--reduce", text]) == 0
    assert capsys.readouterr() == (SMALL, "")
    target = tmp_path / "small.mlir"
    assert opt.main([str(program), "--cse", f"--reduce={text}", "-o", str(target)]) == 0
    assert target.read_text() == SMALL
    assert opt.main([str(target), "--cse"]) == 70


@pytest.mark.usefixtures("planted")
def test_earlier_passes_leave_the_failure(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # An op whose result nothing uses is gone when the bug could meet it.
    assert opt.main([str(program), "--dce", "--cse", "--reduce", "planted"]) == 0
    assert "func.return %0 : tensor<1x1xf32>" in capsys.readouterr().out


def test_an_error_of_ours(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(PROGRAM.replace("aten.relu(%0)", "aten.softmax.int(%0) {dim = -1 : i64}"))
    flags = ["-p", "convert-aten-to-spyre-loop", "--reduce", "aten.softmax.int  x1"]
    assert opt.main([str(program), *flags, "-v"]) == 0
    out, err = capsys.readouterr()
    assert [line.split("(")[0].strip() for line in out.splitlines()] == [
        "builtin.module {",
        "func.func @main",
        "%0 = aten.softmax.int",
        "func.return",
        "}",
        "}",
    ]
    assert "info: 2 ops after " in err


def test_a_command(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; sys.exit('aten.relu' not in open(sys.argv[1]).read())"
    assert opt.main([str(program), "--reduce-test", f'"{sys.executable}" -c "{code}"']) == 0
    assert capsys.readouterr() == (SMALL, "")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--cse", "--reduce", "planted"], "the failure to keep does not occur on the input"),
        (["--reduce-test", "false"], "the failure to keep does not occur on the input"),
        (["--reduce-test", "no-such-program-here"], "no-such-program-here cannot be run: No such file"),
        (["--reduce-test", ""], "names no command"),
        (["--reduce-test", "a 'b"], "No closing quotation"),
        (["--reduce-test", "true", "--cse"], "--reduce-test runs a command, no passes"),
        (["--reduce-test", "true", "--reduce", "a"], "--reduce-test runs a command, no passes"),
    ],
)
def test_refusals(flags: list[str], message: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([str(program), *flags]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
