"""Whatever is wrong with the input, spyre-opt says what, where and what to try, and exits with 1."""

import os
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import InterpretationError

from spyre_mlir.cli import opt
from spyre_mlir.cli.support.endings import guarded
from spyre_mlir.errors import FaultKind, LoweringError, MachineFault, UnsupportedError

Capture = pytest.CaptureFixture[str]

LX = "!spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, lx>"
WITHOUT_FUNCTION = (
    '"spyre.kernel.compute"(%a, %a) '
    "<{space = #spyre.space<m = 64, n = 64>, maps = [#spyre.map<m, n>, #spyre.map<m, n>]}>"
)
# name, text, what the message must contain
BAD_TEXTS = [
    ("broken", "func.func @f( {", ["bad.mlir:1:15:", "func.func @f( {", "^"]),
    ("empty", "", ["bad.mlir:1:1:", "expected a module or an operation", "the file is empty or cut off"]),
    (
        "wrong_type",
        "func.func @f(%a: i32) {\n  %0 = arith.addi %a, %a : i64\n  func.return\n}",
        ["bad.mlir:2:", "i32", "i64"],
    ),
    (
        "unknown_op",
        "func.func @f() {\n  func.retrun\n}",
        ["bad.mlir:2:3:", "func.retrun", "did you mean 'func.return'"],
    ),
    ("unknown_dialect", "spire.loop.nest", ["bad.mlir:1:1:", "no dialect 'spire'", "did you mean 'spyre'"]),
    ("undefined", "func.func @f() -> i32 {\n  func.return %x : i32\n}", ["bad.mlir:", "%x"]),
    (
        "use_first",
        "func.func @f() {\n  %y = arith.addi %x, %x : i32\n  %x = arith.constant 1 : i32\n  func.return\n}",
        ["bad.mlir:2:3:", "operand #0 (%x) of 'arith.addi' is used before it is defined", "%y = arith.addi %x, %x"],
    ),
    (
        "does_not_verify",
        "func.func @f() -> i32 {\n  func.return\n}",
        ["bad.mlir:2:3:", "'func.return'", "expected [i32], got []"],
    ),
    ("twice", "%x = arith.constant 1 : i32\n%x = arith.constant 1 : i32", ["bad.mlir:2:1:", "already defined"]),
    ("integer_range", "%x = arith.constant 300 : i8", ["bad.mlir:1:", "300"]),
    ("float_range", "%x = arith.constant 1e10 : f16", ["bad.mlir:1:", "error"]),
    ("float_bits", "%x = arith.constant dense<0x1FFFF> : tensor<2xf16>", ["bad.mlir:1:27:", "4 hexadecimal digits"]),
    ("huge_integer", f"%x = arith.constant {'9' * 5000} : i64", ["bad.mlir:1:", "..."]),
    ("nul", "func.func @f() {\0}", ["bad.mlir:1:17:", "Unexpected character"]),
    ("open_string", '"test.op"() {a = "x', ["bad.mlir:1:"]),
    ("shape", "%x = arith.constant dense<[1, 2]> : tensor<3xi32>", ["bad.mlir:1:", "Shape mismatch"]),
    ("no_operands", '%x = "test.op"() : () -> f16\n%y = linalg.fill %x : f16 -> tensor<2xf16>', ["bad.mlir:2:18:"]),
    (
        "no_function",
        f"%a = spyre.kernel.alloc : {LX}\n{WITHOUT_FUNCTION} : ({LX}, {LX}) -> ()",
        ["bad.mlir:2:1:", "property 'function' expected"],
    ),
    (
        "no_function_type",
        '"func.func"() <{sym_name = "f"}> ({\n  "func.return"() : () -> ()\n}) : () -> ()',
        ["bad.mlir:1:1:", "property 'function_type' expected"],
    ),
    ("deep", "%x = arith.constant " + "[" * 30_000, ["nested too deeply"]),
]


def check(capsys: Capture, arguments: list[str], parts: list[str], code: int = 1) -> str:
    assert opt.main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    for part in parts:
        assert part in err
    assert max(map(len, err.splitlines())) < 1000
    return err


@pytest.mark.parametrize(("name", "text", "parts"), BAD_TEXTS, ids=[name for name, _, _ in BAD_TEXTS])
def test_bad_text(name: str, text: str, parts: list[str], tmp_path: Path, capsys: Capture):
    path = tmp_path / "bad.mlir"
    path.write_text(text)
    check(capsys, [str(path)], parts)


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.mlir"
    path.write_text("func.func @f() {\n  func.return\n}\n")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["-p", "canonicalise"], ["unknown pass 'canonicalise'", "try: 'canonicalize'"]),
        (["-p", "cse{fast=true}"], ["pass 'cse' has no option 'fast'", "its options: none"]),
        (["-p", "scf-for-loop-range-folding{x"], ["pass pipeline", "x"]),
        (["-p", "cse;dce"], ["pass pipeline", "cse;dce"]),
        (["--pass-pipeline", "builtin.module(cse"], ["brackets do not match", "builtin.module(cse"]),
        (["--pass-pipeline", "gpu.func(cse)"], ["only builtin.module, func.func, any", "gpu.func(cse)"]),
        (["--pass-pipeline", "cse", "-p", "dce"], ["both --passes and --pass-pipeline"]),
        (["-t", "mlirr"], ["invalid choice: 'mlirr'"]),
        (["--no-such-flag"], ["--no-such-flag", "spyre-opt --help"]),
        (
            ["-o", "/no/such/directory/out.mlir"],
            ["/no/such/directory/out.mlir: No such file or directory", "try: name a file in a folder that exists"],
        ),
        (["-o", "/"], ["/: Is a directory", "try: name a file, not a directory"]),
    ],
)
def test_bad_arguments(arguments: list[str], parts: list[str], good: str, capsys: Capture):
    check(capsys, [good, *arguments], parts)


def test_files(tmp_path: Path, capsys: Capture):
    missing = str(tmp_path / "missing.mlir")
    check(capsys, [missing], ["there is no such file", f"at: {missing}"])
    check(
        capsys,
        [str(tmp_path)],
        ["this is a directory", f"at: {tmp_path}", "try: spyre-translate --superdsc-to-mlir DIR"],
    )
    json = tmp_path / "sdsc_0.json"
    json.write_text("{}")
    check(capsys, [str(json)], ["unknown file extension '.json'", "spyre-translate --superdsc-to-mlir reads SuperDSC"])
    other = tmp_path / "program.txt"
    other.write_text("")
    check(capsys, [str(other)], ["unknown file extension '.txt'", "-f mlir"])
    binary = tmp_path / "binary.mlir"
    binary.write_bytes(b"func.func @f() {\n  \xff\xfe\n}")
    check(capsys, [str(binary)], ["not UTF-8", "byte 0xff", "binary.mlir:2:3"])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_output_that_may_not_be_written(good: str, tmp_path: Path, capsys: Capture):
    locked = tmp_path / "locked.mlir"
    locked.write_text("")
    locked.chmod(0o400)
    check(capsys, [good, "-o", str(locked)], ["locked.mlir: Permission denied"])


def test_long_lines_are_cut_around_the_place(tmp_path: Path, capsys: Capture):
    path = tmp_path / "long.mlir"
    path.write_text(f'"builtin.module"() {{a = "{"x" * 100_000}", b = ?{"y" * 100_000}}} : () -> ()')
    err = check(capsys, [str(path)], ["long.mlir:1:1000", "^"])
    assert len(err) < 1000


def failing_pass(error: Exception) -> Callable[[], type[ModulePass]]:
    class FailingPass(ModulePass):
        name = "fail"

        def apply(self, ctx: object, op: ModuleOp) -> None:
            raise error

    return lambda: FailingPass


@pytest.mark.parametrize(
    ("error", "code", "parts"),
    [
        (
            LoweringError("needs 3 bytes of 2", where="model.py:7", hint="fewer rows"),
            1,
            ["SPY-L001", "model.py:7", "fewer rows"],
        ),
        (UnsupportedError("no rule for aten.topk"), 2, ["SPY-U001", "aten.topk"]),
        (InterpretationError("no rule for x.y"), 2, ["no rule for x.y"]),
        (
            MachineFault(FaultKind.READ_WRITE_RACE, "cores 1 and 2 write"),
            3,
            ["SPY-F001", "read-write-race: cores 1 and 2 write"],
        ),
        (
            KeyError("oops"),
            70,
            ["internal error in spyre-opt", "KeyError: 'oops'", "file a bug", "test_opt_errors.py:"],
        ),
        (AssertionError("we are wrong"), 70, ["internal error", "we are wrong"]),
    ],
)
def test_errors_of_a_pass(error: Exception, code: int, parts: list[str], good: str, capsys: Capture):
    with mock.patch.dict(opt.SPYRE_UNIVERSE.all_passes, {"fail": failing_pass(error)}):
        check(capsys, [good, "-p", "fail"], parts, code)


def test_pass_that_leaves_invalid_ir_is_named(good: str, capsys: Capture):
    class BreakPass(ModulePass):
        name = "break"

        def apply(self, ctx: object, op: ModuleOp) -> None:
            (function,) = op.ops
            (block,) = function.regions[0].blocks
            (last,) = block.ops
            block.erase_op(last)

    with mock.patch.dict(opt.SPYRE_UNIVERSE.all_passes, {"break": lambda: BreakPass}):
        check(capsys, [good, "-p", "break"], ["good.mlir:1:1:", "after pass 'break'"])


def test_traceback_on_request(good: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPYRE_MLIR_TRACEBACK", "1")
    with mock.patch.dict(opt.SPYRE_UNIVERSE.all_passes, {"fail": failing_pass(KeyError("oops"))}):
        assert opt.main([good, "-p", "fail"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_reader_that_went_away_is_no_error(capfd: pytest.CaptureFixture[str]):
    @guarded("tool")
    def main(argv: object) -> int:
        raise BrokenPipeError

    with mock.patch("os.dup2"):
        assert main([]) == 0
    assert capfd.readouterr().err == ""


def test_null_characters(capsys: Capture):
    check(capsys, ["a\0b.mlir"], ["'a\\x00b.mlir' holds a null character", "--help"])
