"""Lists, dumps, logs and progress: what tools show besides their result."""

import io
import logging
import re
from pathlib import Path
from unittest import mock

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import spyre_mlir
from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import opt
from spyre_mlir.cli import run as run_tool
from spyre_mlir.cli.support.watch import RecordingWatch
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.assign_pool import AssignPoolPass

Capture = pytest.CaptureFixture[str]
TWICE = """\
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  func.return %1 : i32
}
"""


@pytest.fixture
def twice(tmp_path: Path) -> str:
    path = tmp_path / "twice.mlir"
    path.write_text(TWICE)
    return str(path)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def columns(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_list_ops_for_a_pipe(capsys: Capture) -> None:
    assert opt.main(["--list-ops"]) == 0
    head, *rows = columns(capsys.readouterr().out)
    assert head == ["op", "support", "family", "hardware function", "unit", "formats"]
    assert {len(row) for row in rows} == {6}
    assert ["aten.mm", "native", "contraction", "batchmatmul", "pt", "DL16"] in rows
    assert ["aten.add.Tensor", "native", "pointwise", "add", "sfp", "DL16 FP32"] in rows
    assert ["aten.view", "native", "view", "", "", ""] in rows


def test_list_passes_for_a_pipe(capsys: Capture) -> None:
    assert opt.main(["--list-passes"]) == 0
    head, *rows = columns(capsys.readouterr().out)
    assert head == ["pass", "from", "options", "meaning"]
    assert rows[0][:2] == ["assign-pool", "spyre"]
    assert ["cse", "xdsl", "", ""] in rows
    options = next(row[2] for row in rows if row[0] == "convert-spyre-kernel-to-superdsc")
    assert "version=TS25|TS26|TSNEW" in options


def test_list_on_a_terminal_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", screen := Terminal())
    assert opt.main(["--list-ops"]) == 0
    assert "batchmatmul" in screen.getvalue()
    assert "\t" not in screen.getvalue()
    assert "━" in screen.getvalue()


def test_dump_directory(twice: str, tmp_path: Path, capsys: Capture) -> None:
    directory = tmp_path / "new" / "dumps"
    assert opt.main([twice, "-p", "cse,dce", "--dump-dir", str(directory)]) == 0
    result = capsys.readouterr().out
    texts = {path.name: path.read_text() for path in directory.iterdir()}
    assert sorted(texts) == ["00-input.mlir", "01-cse.mlir", "02-dce.mlir"]
    assert [texts[name].count("arith.addi") for name in sorted(texts)] == [2, 1, 1]
    assert texts["02-dce.mlir"] == result
    assert opt.main([str(directory / "01-cse.mlir")]) == 0


def test_dumps_go_to_stderr(twice: str, capsys: Capture) -> None:
    assert opt.main([twice, "-p", "cse,dce", "--print-ir-after", "cse"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("builtin.module {")
    assert err.count("IR Dump After cse") == 1
    assert "IR Dump After dce" not in err
    assert opt.main([twice, "-p", "cse,dce", "--print-ir-after-all"]) == 0
    assert capsys.readouterr().err.count("IR Dump After") == 2


class BreakPass(ModulePass):
    name = "break"

    def apply(self, ctx: object, op: ModuleOp) -> None:
        (function,) = op.ops
        block = function.regions[0].block
        block.erase_op(block.last_op)


class MendPass(ModulePass):
    name = "mend"

    def apply(self, ctx: object, op: ModuleOp) -> None:
        (function,) = op.ops
        function.detach()
        function.erase(safe_erase=False)


@pytest.mark.parametrize(("flags", "code"), [([], 1), (["--verify-each"], 1), (["--no-verify-each"], 0)])
def test_verify_each(flags: list[str], code: int, twice: str, capsys: Capture) -> None:
    passes = {"break": lambda: BreakPass, "mend": lambda: MendPass}
    with mock.patch.dict(opt.SPYRE_UNIVERSE.all_passes, passes):
        assert opt.main([twice, "-p", "break,mend", *flags]) == code
    assert ("after pass 'break'" in capsys.readouterr().err) == (code == 1)


def test_the_end_is_always_verified(twice: str, capsys: Capture) -> None:
    with mock.patch.dict(opt.SPYRE_UNIVERSE.all_passes, {"break": lambda: BreakPass}):
        assert opt.main([twice, "-p", "break", "--no-verify-each"]) == 1
    assert "after pass 'break'" in capsys.readouterr().err


def test_verbosity(twice: str, capsys: Capture) -> None:
    assert opt.main([twice, "-p", "cse"]) == 0
    assert capsys.readouterr().err == ""
    assert opt.main([twice, "-p", "cse", "-v"]) == 0
    assert re.fullmatch(r"info: cse: 4 ops, \d+\.\d+ s\n", capsys.readouterr().err)
    assert opt.main([twice, "-p", "cse", "-vv"]) == 0
    assert "debug: cse begins" in capsys.readouterr().err


def test_logging_is_left_as_it_was(twice: str, capsys: Capture) -> None:
    logger = logging.getLogger("spyre_mlir")
    before = list(logger.handlers), logger.level
    assert opt.main([twice, "-v"]) == 0
    assert (list(logger.handlers), logger.level) == before


def test_compile_says_what_it_did(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = [str(saved), "-o", str(tmp_path / "b"), "-v", "--dump-dir", str(tmp_path / "d")]
    assert compile_tool.run([*arguments, "--sdsc-version", "TS25"]) == 0
    out, err = capsys.readouterr()
    assert f"wrote {tmp_path / 'b'}" in out
    assert "info: import of layer.pt2: " in err
    assert re.search(r"info: divide-work: \d+ ops, \d+\.\d+ s\n", err)
    assert "info: level superdsc: " in err
    names = sorted(path.name for path in (tmp_path / "d").iterdir())
    assert names[0] == "00-input.mlir"
    assert names[-1].endswith("-convert-spyre-kernel-to-superdsc.mlir")
    assert (tmp_path / "b" / "sdsc_0_batchmatmul.json").is_file()
    assert run_tool.run([str(tmp_path / "b"), "-v"]) == 0
    assert "info: run: 3 arguments, 1 results" in capsys.readouterr().err


def test_concrete_addresses(saved: Path, capsys: Capture) -> None:
    texts = {}
    for addresses in ("symbolic", "concrete"):
        assert compile_tool.run([str(saved), "--emit", "superdsc", "--addresses", addresses]) == 0
        texts[addresses] = capsys.readouterr().out
    assert ["symbol_id" in text or "symbolic" in text for text in texts.values()] == [True, False]


def test_emit_stops_at_its_level(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    assert compile_tool.run([str(saved), "--emit", "spyre.loop", "--dump-dir", str(tmp_path)]) == 0
    assert "spyre.loop.nest" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir())[-1].endswith("-schedule-host-steps.mlir")


def test_report_prints_itself(saved: Path) -> None:
    report = spyre_mlir.compile(saved).report()
    assert [stage.level for stage in report.stages] == ["aten", "spyre.loop", "spyre.kernel", "superdsc"]
    assert str(report) == repr(report)
    assert "HBM bytes" in str(report)


FLAG = "--mlir-pass-pipeline-crash-reproducer"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(self: AssignPoolPass, ctx: Context, op: ModuleOp) -> None:
        raise LoweringError("the pool is broken")

    monkeypatch.setattr(AssignPoolPass, "apply", apply)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("end", [["-o", "out"], ["--emit", "superdsc"], ["--emit", "dot"]])
def test_a_pass_that_fails_leaves_its_module(
    end: list[str], saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert compile_tool.run([str(saved), *end, FLAG, "again.mlir"]) == 1
    told = capsys.readouterr()
    assert "the pool is broken" in told.err and told.out == ""
    assert "the module before assign-pool is in again.mlir" in told.err
    text = Path("again.mlir").read_text()
    assert 'pipeline: "builtin.module(assign-pool)"' in text and "spyre.kernel.compute" in text
    assert opt.main(["again.mlir", "--run-reproducer"]) == 1
    assert "the pool is broken" in capsys.readouterr().err


def test_what_compiles_or_fails_between_passes_leaves_none(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.mlir"
    assert compile_tool.run([str(saved), "--emit", "superdsc", FLAG, str(path)]) == 0
    assert not path.exists()
    watch = RecordingWatch(str(path), {})
    watch.before("cse", ModuleOp([]))
    watch.after("cse", ModuleOp([]))
    watch.failed(LoweringError("host steps are refused"))
    assert not path.exists()


def test_options_of_the_pass_are_in_the_reproducer(tmp_path: Path) -> None:
    path = tmp_path / "again.mlir"
    watch = RecordingWatch(str(path), {"plan": {"loops": False}})
    watch.before("plan", ModuleOp([]))
    watch.failed(LoweringError("no plan"))
    assert 'pipeline: "builtin.module(plan{loops=false})"' in path.read_text()


def test_a_reproducer_that_cannot_be_written_is_refused_first(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    assert compile_tool.run([str(saved), "--emit", "superdsc", FLAG, str(tmp_path / "none" / "x")]) == 1
    assert "No such file" in capsys.readouterr().err
