"""Reproducers: written when a pass fails, run again, and those of mlir-opt."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from spyre_mlir.cli import opt
from spyre_mlir.cli.support.reproducer import Reproducer, separated

PROGRAM = """\
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = aten.exp(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = aten.exp(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = aten.softmax.int(%1) {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("model.py":3:4)
  func.return %2 : tensor<4x8xf32>
}
"""
MESSAGE = '1 operation lacks a lowering (1 node):\n  aten.softmax.int  x1, first at "model.py":3:4'
# As mlir-opt 22 writes it; resources of a dialect may stand beside it.
OF_MLIR_OPT = """
{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(cse, decompose-aten{cap=\\"x\\"})",
      disable_threading: false,
      verify_each: false
    }
  }
#-}
"""


@pytest.fixture
def failing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A reproducer of a softmax that has no lowering, in the last pass but one."""
    program, path = tmp_path / "program.mlir", tmp_path / "r.mlir"
    program.write_text(PROGRAM)
    flags = ["-p", "cse,convert-aten-to-spyre-loop,dce", f"--mlir-pass-pipeline-crash-reproducer={path}"]
    assert opt.main([str(program), *flags]) == 2
    err = capsys.readouterr().err
    assert f"note: the module before convert-aten-to-spyre-loop is in {path}" in err
    assert MESSAGE in err
    return path


def test_module_before_the_failing_pass_and_the_passes_from_there_on(failing: Path) -> None:
    text = failing.read_text()
    assert text.startswith("// convert-aten-to-spyre-loop fails: [SPY-U001] 1 operation lacks a lowering (1 node):\n")
    assert f"\n// spyre-opt {failing} --run-reproducer\n" in text
    assert text.count("aten.exp") == 1  # cse had run
    assert 'loc("model.py":3:4)' in text
    assert 'pipeline: "builtin.module(convert-aten-to-spyre-loop,dce)"' in text
    assert "verify_each: true" in text


def test_it_fails_again_in_the_same_way(failing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([str(failing), "--run-reproducer"]) == 2
    assert MESSAGE in capsys.readouterr().err


def test_from_standard_input(
    failing: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(failing.read_bytes())))
    assert opt.main(["-", "--run-reproducer"]) == 2
    assert MESSAGE in capsys.readouterr().err


def test_it_is_a_program_like_any_other(failing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([str(failing), "-p", "decompose-aten,convert-aten-to-spyre-loop"]) == 0
    out = capsys.readouterr().out
    assert "spyre.loop.nest" in out
    assert "mlir_reproducer" not in out


def test_an_error_of_the_compiler_leaves_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object) -> None:
        raise KeyError("planted")

    program, path = tmp_path / "program.mlir", tmp_path / "r.mlir"
    program.write_text(PROGRAM)
    with monkeypatch.context() as planted:
        planted.setattr(CommonSubexpressionElimination, "apply", fail)
        flags = ["--dce", "--cse", "--no-verify-each", f"--mlir-pass-pipeline-crash-reproducer={path}"]
        assert opt.main([str(program), *flags]) == 70
        assert 'pipeline: "builtin.module(cse)"' in path.read_text()
        assert "verify_each: false" in path.read_text()
        assert path.read_text().startswith("// cse fails: 'planted'\n")
        assert opt.main([str(path), "--run-reproducer"]) == 70
    assert opt.main([str(path), "--run-reproducer"]) == 0
    assert "softmax" in capsys.readouterr().out


def test_nothing_is_written_when_no_pass_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, path = tmp_path / "program.mlir", tmp_path / "r.mlir"
    program.write_text(PROGRAM)
    flag = f"--mlir-pass-pipeline-crash-reproducer={path}"
    assert opt.main([str(program), "--cse", flag]) == 0
    program.write_text("func.func")
    assert opt.main([str(program), "--cse", flag]) == 1
    assert not path.exists()
    assert opt.main([str(program), "--cse", f"{flag}/there"]) == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_the_piece_of_the_input_that_fails(tmp_path: Path) -> None:
    program, path = tmp_path / "program.mlir", tmp_path / "r.mlir"
    program.write_text("func.func @first() {\n  func.return\n}\n// -----\n" + PROGRAM)
    flags = ["--split-input-file", "-p", "cse,convert-aten-to-spyre-loop"]
    assert opt.main([str(program), *flags, f"--mlir-pass-pipeline-crash-reproducer={path}"]) == 2
    text = path.read_text()
    assert "@first" not in text
    assert 'pipeline: "builtin.module(convert-aten-to-spyre-loop)"' in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--run-reproducer"], "the file holds no pipeline of a reproducer"),
        (["--run-reproducer", "--cse"], "both passes and --run-reproducer are given"),
    ],
)
def test_refusals(flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(PROGRAM)
    assert opt.main([str(program), *flags]) == 1
    assert message in capsys.readouterr().err


def test_reproducers_of_mlir_opt() -> None:
    rest, found = separated(PROGRAM + OF_MLIR_OPT)
    assert rest.strip() == PROGRAM.strip()
    assert found == Reproducer('builtin.module(cse, decompose-aten{cap="x"})', verify_each=False)


def test_resources_of_dialects_beside_it_stay() -> None:
    beside = OF_MLIR_OPT.replace("{-#", '{-#\n  dialect_resources: {\n    builtin: {a: "0x00"}\n  },')
    rest, found = separated(PROGRAM + beside)
    assert found is not None
    assert rest.removeprefix(PROGRAM).split() == [
        "{-#",
        "dialect_resources:",
        "{",
        "builtin:",
        "{a:",
        '"0x00"}',
        "}",
        "#-}",
    ]


@pytest.mark.parametrize(
    "text",
    [
        PROGRAM,
        PROGRAM + '{-#\n  dialect_resources: {\n    builtin: {a: "0x00"}\n  }\n#-}\n',
        '// external_resources: { mlir_reproducer: { pipeline: "a" } }\n' + PROGRAM,
    ],
)
def test_texts_without_one_stay_as_they_are(text: str) -> None:
    assert separated(text) == (text, None)


def test_a_configuration_without_a_pipeline_is_none() -> None:
    assert separated("{-# external_resources: { mlir_reproducer: { verify_each: true } } #-}") == ("", None)


@pytest.mark.parametrize("pipeline", ["builtin.module()", 'builtin.module(a{b="c\\"d"})'])
def test_what_is_written_reads_back(pipeline: str) -> None:
    written = Reproducer(pipeline, verify_each=False)
    assert separated(written.text().strip()) == ("", written)
