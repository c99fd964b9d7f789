"""What every tool shares: exit codes and the form of errors."""

import pytest
from xdsl.utils.lexer import Input, Span

from spyre_mlir.cli.support.endings import ToolArgumentParser, clamped, guarded, marked, span_message


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
