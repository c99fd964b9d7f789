"""Comments of mlir-opt about expected errors, against errors that come."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyre_mlir.cli import opt
from spyre_mlir.cli.support.expected import Chunk, expected_errors, lines_of, verify_diagnostics
from spyre_mlir.errors import InputError, LoweringError, ReadError

SURPLUS = "  %0 = aten.neg(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"


def function(*lines: str) -> str:
    return "\n".join(["func.func @f(%x: tensor<4xf32>) {", *lines, "  func.return", "}", ""])


def checked(tmp_path: Path, text: str, *flags: str) -> int:
    path = tmp_path / "f.mlir"
    path.write_text(text)
    return opt.main([str(path), "--verify-diagnostics", *flags])


@pytest.mark.parametrize(
    ("comment", "line"),
    [
        ("// expected-error {{a}}", 4),
        ("// expected-error@+1 {{a}}", 5),
        ("// expected-error @+12 {{a}}", 16),
        ("// expected-error@-2 {{a}}", 2),
        ("// expected-error@above {{a}}", 3),
        ("// expected-error@below {{a}}", 5),
        ("// expected-error@unknown {{a}}", None),
        ("x // expected-error{{a}}\r", 4),
    ],
)
def test_lines_of_comments(comment: str, line: int | None) -> None:
    (found,) = expected_errors(Chunk(f"\n{comment}\nend".encode(), 2), "f.mlir")
    assert (found.written, found.line, found.text) == (4, line, "a")


def test_comments_above_one_another_mean_the_same_line() -> None:
    text = "\n".join(
        [
            "one",
            "// expected-error@above {{a}}",
            "// expected-error@above {{b}}",
            "// expected-error@below {{c}}",
            "// expected-error@below {{d}}",
            "six",
        ]
    )
    found = expected_errors(Chunk(text.encode(), 0), "f.mlir")
    assert {one.text: one.line for one in found} == {"a": 1, "b": 1, "c": 6, "d": 6}


def test_a_last_comment_about_the_line_below_means_the_next_one() -> None:
    (found,) = expected_errors(Chunk(b"one\n// expected-error@below {{a}}", 0), "f.mlir")
    assert found.line == 3


@pytest.mark.parametrize(
    ("text", "message", "fits"),
    [
        ("expected-error@unknown {{a.c}}", "xa.cx", True),
        ("expected-error@unknown {{a.c}}", "abc", False),
        ("expected-error-re@unknown {{a.{{[0-9]+}} c}}", "a.42 c", True),
        ("expected-error-re@unknown {{a.{{[0-9]+}} c}}", "ab42 c", False),
        ("expected-error-re@unknown {{a.{{[0-9]+}} c}}", "a. c", False),
        ("expected-error@unknown {{a{{b}}}}", "a{{b}}", True),
    ],
)
def test_patterns(text: str, message: str, fits: bool) -> None:
    (found,) = expected_errors(Chunk(text.encode(), 0), "f.mlir")
    assert found.fits(ValueError(message), frozenset()) is fits


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("// expected-warning {{a}}", "no diagnostics of the kind 'expected-warning'"),
        ("// expected-error {a}", "cannot be read"),
        ("// expected-error@here {{a}}", "cannot be read"),
        ("// expected-error-re {{a{{[}}}}", "no regular expression"),
    ],
)
def test_comments_that_mean_nothing_are_refused(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        expected_errors(Chunk(line.encode(), 0), "f.mlir")


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ReadError, match="0xff"):
        expected_errors(Chunk(b"\xff", 0), "f.mlir")


def test_lines_that_an_error_names() -> None:
    error = LoweringError("too large: f.mlir:12 and g.mlir:13", where='add at "f.mlir":7:3, sub at "f.mlir":9')
    assert lines_of(error, "f.mlir") == {7, 9, 12}
    assert lines_of(error, "h.mlir") == frozenset()


def test_an_error_of_the_compiler_is_no_diagnostic() -> None:
    def process(chunk: Chunk) -> None:
        raise KeyError(chunk.offset)

    with pytest.raises(KeyError):
        verify_diagnostics("f.mlir", [Chunk(b"// expected-error@unknown {{0}}", 0)], process)


def test_an_expected_error_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, function("  // expected-error@+1 {{1 operands more than the schema}}", SURPLUS)) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        ([SURPLUS], ["1 difference from", "f.mlir:2: unexpected error: 1 operands more"]),
        (
            ["  // expected-error@+1 {{never}}"],
            ["1 difference from", "f.mlir:2: the expected error 'never' at line 3 did not come"],
        ),
        (
            ["  // expected-error {{1 operands more}}", SURPLUS],
            ["2 differences", "f.mlir:2: the expected error '1 operands more' at line 2", "f.mlir:3: unexpected"],
        ),
        (
            ["  // expected-error@unknown {{1 operands more}}", SURPLUS],
            ["2 differences", "'1 operands more' at no line did not come", "f.mlir:3: unexpected"],
        ),
    ],
)
def test_differences(lines: list[str], parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, function(*lines)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    for part in parts:
        assert part in err


def test_chunks_are_checked_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = function("  // expected-error@below {{1 operands more}}", SURPLUS)
    text = "// -----\n".join([function(), bad, function(), function(SURPLUS), "func.func 3\n"])
    assert checked(tmp_path, text, "--split-input-file") == 1
    err = capsys.readouterr().err
    assert "2 differences" in err
    # 3, 5 and 3 lines of functions and a line behind each; the surplus operand is the second line of the next one.
    assert "f.mlir:16: unexpected error: 1 operands more" in err
    assert "f.mlir:20: unexpected error: " in err


def test_results_of_chunks_without_an_error_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = function("  // expected-error@below {{1 operands more}}", SURPLUS)
    target = tmp_path / "out.mlir"
    text = "// -----\n".join([function(), bad, function()])
    assert checked(tmp_path, text, "--split-input-file", "-o", str(target)) == 0
    assert capsys.readouterr().out == ""
    assert target.read_text().count("func.func @f") == 2
    assert target.read_text().count("// -----\n") == 1
