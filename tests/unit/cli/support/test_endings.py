"""What every tool shares: exit codes and the form of errors."""

import argparse
import errno
import logging
import sys
from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.dialects.test import TestOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, InterpretationError
from xdsl.utils.lexer import Input, Span

from spyre_mlir.cli import opt, tools
from spyre_mlir.cli.flags.mlir_flags import ELSEWHERE
from spyre_mlir.cli.support import endings
from spyre_mlir.cli.support.endings import (
    ToolArgumentParser,
    add_verbosity,
    clamped,
    guarded,
    log_to_stderr,
    marked,
    span_message,
    usage_error,
)
from spyre_mlir.errors import FaultKind, InputError, MachineFault, UnsupportedError


def test_wrong_usage_of_any_tool(capsys: pytest.CaptureFixture[str]):
    @guarded("spyre-tool")
    def main(argv: list[str] | None) -> int:
        ToolArgumentParser(prog="spyre-tool").parse_args(argv)
        return 0

    assert main([]) == 0
    assert main(["--nonsense"]) == 1
    assert "try: spyre-tool --help" in capsys.readouterr().err
    assert main(["--help"]) == 0


@pytest.mark.parametrize(("stop", "code"), [(None, 0), (3, 3), ("text", 1)])
def test_exit_is_an_exit_code(stop: object, code: int):
    @guarded("tool")
    def main(argv: object) -> int:
        raise SystemExit(stop)

    assert main([]) == code


def test_mark_stands_under_its_column():
    assert marked("abcdef", 2, 3) == "  abcdef\n    ^^^"


def test_long_line_is_cut_on_both_sides():
    line, mark = marked("x" * 500 + "HERE" + "y" * 500, 500, 4).splitlines()
    assert line.startswith("  ... x")
    assert line.endswith("y ...")
    assert line[mark.index("^") :].startswith("HERE")
    assert mark.strip() == "^^^^"


def test_span_names_file_line_and_column():
    text = "first\nsecond line\n"
    start = text.index("line")
    message = span_message(Span(start, start + 4, Input(text, "f.mlir")), "bad word")
    assert message == "f.mlir:2:8: bad word\n  second line\n         ^^^^"


def test_clamped():
    assert clamped("short") == "short"
    assert clamped("x" * 11, 10) == "xxxxxxxxxx ... (1 more characters)"


def ended(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """How a tool ends that raises an error, and what it reports."""

    @guarded("spyre-tool")
    def main(argv: object) -> int:
        raise error

    return main([]), capsys.readouterr().err


NO_FOLDER = "\n  try: name a file in a folder that exists"
NO_RIGHT = "\n  try: name a file that you may read, or a folder that you may write to"
LESS_MEMORY = "\n  try: --memory-limit, if the machine has more"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UnsupportedError("a fold", where="f.py:3"), 2, "[SPY-U001] a fold\n  at: f.py:3"),
        (MachineFault(FaultKind.DEADLOCK, "two wait"), 3, "[SPY-F001] deadlock: two wait"),
        (InterpretationError("no meaning"), 2, "no meaning"),
        (DiagnosticException("no type"), 1, "no type"),
        (RecursionError("depth"), 1, "the input is nested too deeply for this tool"),
        (MemoryError("8 GB"), 1, f"the input asks for more memory than there is: 8 GB{LESS_MEMORY}"),
        (MemoryError(), 1, f"the input asks for more memory than there is{LESS_MEMORY}"),
        (OSError(errno.ENOMEM, "mmap"), 1, f"the input asks for more memory than there is{LESS_MEMORY}"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.mlir"), 1, f"a.mlir: No such file{NO_FOLDER}"),
        (OSError(errno.EROFS, "Read-only", "a.mlir"), 1, f"a.mlir: Read-only{NO_RIGHT}"),
        (OSError(errno.ELOOP, "Too many links", "a.mlir"), 1, "a.mlir: Too many links"),
        (OSError(errno.ENOSPC, "No space left"), 1, "the results cannot be written: No space left"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_has_its_code_and_text(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(error, capsys) == (code, f"error: {text}\n")


@pytest.mark.parametrize("error", [KeyError("x"), OSError(errno.EINVAL, "Invalid argument")])
def test_what_has_no_name_is_a_bug_and_where_it_happened(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPYRE_MLIR_TRACEBACK", raising=False)
    code, text = ended(error, capsys)
    assert code == 70
    assert text.startswith(f"error: internal error in spyre-tool: {type(error).__name__}: {error} at {__file__}:")
    assert "Traceback" not in text
    monkeypatch.setenv("SPYRE_MLIR_TRACEBACK", "1")
    assert "Traceback" in ended(error, capsys)[1]


def test_a_reader_that_went_away_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(BrokenPipeError(), capsys) == (0, "")


def test_a_null_character_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded("tool")(lambda argv: 0)(["good", "a\0b"]) == 1
    assert "the argument 'a\\x00b' holds a null character\n  try: tool --help" in capsys.readouterr().err


@pytest.mark.parametrize(("count", "more"), [(24, []), (25, ["... (1 more lines)"]), (30, ["... (6 more lines)"])])
def test_a_long_report_is_cut(count: int, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    lines = [str(number) for number in range(count)]
    _, text = ended(DiagnosticException("\n".join(lines)), capsys)
    assert text.removeprefix("error: ").splitlines() == lines[:24] + more


@pytest.mark.parametrize(
    ("verbose", "lines"),
    [
        (0, ["warning: w"]),
        (1, ["warning: w", "info: i"]),
        *((n, ["warning: w", "info: i", "debug: d"]) for n in (2, 3)),
    ],
)
def test_logging_is_on_stderr_until_the_tool_ends(
    verbose: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("spyre_mlir")
    before = list(logger.handlers), logger.level

    @guarded("tool")
    def main(argv: object) -> int:
        log_to_stderr(verbose)
        inner = logger.getChild("part")
        inner.warning("w")
        inner.info("i")
        inner.debug("d")
        return 0

    assert main([]) == 0
    assert capsys.readouterr().err.splitlines() == lines
    assert (list(logger.handlers), logger.level) == before


def test_verbosity_counts() -> None:
    parser = argparse.ArgumentParser()
    add_verbosity(parser)
    assert [parser.parse_args(words).verbose for words in ([], ["-v"], ["-vv"], ["--verbose"])] == [0, 1, 2, 1]


def test_a_tool_may_recurse_deeply_and_its_caller_as_before() -> None:
    before, seen = sys.getrecursionlimit(), list[int]()
    assert guarded("tool")(lambda argv: seen.append(sys.getrecursionlimit()) or 0)([]) == 0
    assert seen == [20_000]
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    ("column", "width", "shown"),
    [(10, 1, "  abc\n     ^"), (1, 9, "  abc\n   ^^"), (0, 0, "  abc\n  ^")],
)
def test_a_mark_stays_at_its_line(column: int, width: int, shown: str) -> None:
    assert marked("abc", column, width) == shown


@pytest.mark.parametrize(
    ("length", "column", "shown"),
    [
        (160, 0, "x" * 160),
        (161, 0, "x" * 160 + " ..."),
        (161, 80, "x" * 160 + " ..."),
        (161, 81, "... " + "x" * 160),
        (163, 81, "... " + "x" * 160 + " ..."),
    ],
)
def test_a_line_of_more_than_160_characters_is_cut(length: int, column: int, shown: str) -> None:
    line, mark = marked("x" * length, column).splitlines()
    assert line == f"  {shown}"
    cut = shown.startswith("...")
    assert mark == " " * (2 + column + (4 - (column - 80) if cut else 0)) + "^"


def at_place(file: Path, line: int) -> Operation:
    op = TestOp()
    op.location = FileLineColLoc(StringAttr(str(file)), IntAttr(line), IntAttr(3))
    return op


@pytest.mark.parametrize(("line", "source"), [(1, "\n  first\n    ^"), (2, "\n  second\n    ^"), (3, "")])
def test_an_op_is_shown_in_its_file(line: int, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.mlir"
    file.write_text("first\nsecond\n")
    error = InterpretationError("no")
    vars(error)["op"] = at_place(file, line)
    assert ended(error, capsys)[1] == f"error: {file}:{line}:3: 'test.op': no{source}\n"


def test_an_op_without_file_or_place_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone, unplaced = InterpretationError("no"), InputError("no")
    vars(gone)["op"], vars(unplaced)["op"] = at_place(tmp_path / "gone", 1), TestOp()
    gone.add_note("a note")
    assert ended(gone, capsys)[1] == f"error: {tmp_path / 'gone'}:1:3: 'test.op': no\na note\n"
    assert ended(unplaced, capsys)[1] == "error: 'test.op': [SPY-I002] no\n"


def test_a_dump_is_cut_to_the_neighbourhood_of_its_mark(capsys: pytest.CaptureFixture[str]) -> None:
    error = DiagnosticException("no")
    for note in ("a\nb\nc\n  ^^^ here\nd\ne\nf\ng", "ours", "x\n^^^", "y" * 640):
        error.add_note(note)
    assert ended(error, capsys)[1] == "error: no\nours\nb\nc\n  ^^^ here\nd\ne\nf\n"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), BrokenPipeError()])
def test_what_cannot_be_written_is_dropped(
    error: OSError, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[bool] = []
    monkeypatch.setattr(endings, "drop_output", lambda: dropped.append(True))
    ended(error, capsys)
    assert dropped == [True]


def hint(message: str) -> str | None:
    parser = argparse.ArgumentParser(prog="spyre-tool")
    parser.add_argument("-n", "--numerics")
    error = usage_error(parser, message, ["--canonicalize"], {"--mlir-elide": "leave it out"})
    assert error.message == message
    return error.hint


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("unrecognized arguments: --numeric exact", "did you mean --numerics?"),
        ("unrecognized arguments: file.mlir --numerix=exact", "did you mean --numerics?"),
        ("unrecognized arguments: --canonicalise", "did you mean --canonicalize?"),
        ("unrecognized arguments: --mlir-elide-elementsattrs-if-larger=4", "leave it out"),
        ("unrecognized arguments: --verbose-everything", "spyre-tool --help"),
        ("unrecognized arguments: second.mlir", "spyre-tool --help"),
        ("argument --numerics: expected one argument", "spyre-tool --help"),
    ],
)
def test_a_flag_that_is_not_there_is_answered_with_the_one_that_was_meant(message: str, wanted: str) -> None:
    assert hint(message) == wanted


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["opt", "--canonicalise"], "did you mean --canonicalize?"),
        (["opt", "--decompose-atn"], "did you mean --decompose-aten?"),
        (["opt", "--print-ir-aftr-all"], "did you mean --print-ir-after-all?"),
        (["opt", "--mlir-print-op-generc"], "did you mean --mlir-print-op-generic?"),
        (["run", "b", "--nummerics", "exact"], "did you mean --numerics?"),
        (["compile", "m.pt2", "--emti", "aten"], "did you mean --emit?"),
        (["translate", "--check", "b", "--outptu", "c"], "did you mean --output?"),
    ],
)
def test_every_tool_says_which_flag_was_meant(
    words: list[str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tools.main(words) == 1
    assert f"\n  try: {wanted}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flag", [*ELSEWHERE, "--mlir-elide-resource-strings-if-larger=8", "--mlir-print-ir-before-all"]
)
def test_flags_of_mlir_opt_that_have_no_counterpart_say_what_to_do(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt.main([flag]) == 1
    told = capsys.readouterr().err
    assert f"unrecognized arguments: {flag}\n  try: " in told
    assert "--help" not in told
