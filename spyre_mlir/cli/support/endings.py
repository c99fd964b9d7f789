"""Exit of every tool: results on stdout, one readable error on stderr, and a meaningful exit code.

0 done, 1 error in the input, 2 valid but unsupported, 3 the program misbehaved on the machine, 70 our bug.
"""

from __future__ import annotations

import argparse
import errno
import functools
import logging
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from difflib import get_close_matches
from typing import Any, NoReturn, Protocol, cast

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, InterpretationError, ParseError
from xdsl.utils.lexer import Span

from spyre_mlir.cli.start import INTERRUPTED
from spyre_mlir.cli.support.completion import ShowCompletion
from spyre_mlir.cli.support.memory_limit import memory_restored, memory_to_spare
from spyre_mlir.cli.support.streams import drop_output, streams_opened
from spyre_mlir.cli.support.versions import ShowVersion
from spyre_mlir.errors import InputError, SpyreError

DONE, INPUT_ERROR, UNSUPPORTED, INTERNAL_ERROR = 0, 1, 2, 70

# Deep IR recurses deeply; this many frames fit the usual 8 MiB stack, and beyond them Python still raises.
RECURSION_LIMIT = 20_000
MAX_COLUMNS = 160
MAX_LINES = 24
_NO_FOLDER = "name a file in a folder that exists"
_NO_RIGHT = "name a file that you may read, or a folder that you may write to"
_REMEDIES = {
    errno.ENOENT: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EISDIR: "name a file, not a directory",
    errno.EACCES: _NO_RIGHT,
    errno.EPERM: _NO_RIGHT,
    errno.EROFS: _NO_RIGHT,
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ENOSPC: "make room, or name a place on another disk",
}
_UNKNOWN = "unrecognized arguments: "
_LIKE = 0.75  # closer than two flags of a tool usually are
_NO_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG)

Main = Callable[[Sequence[str] | None], int]


class ToolArgumentParser(argparse.ArgumentParser):
    """An argument parser with `--version` that reports errors like all others, with exit code 1 for argparse's 2."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Same arguments as `argparse.ArgumentParser`."""
        super().__init__(*args, **kwargs)
        self.add_argument("--version", action=ShowVersion)
        self.add_argument("--print-completion", action=ShowCompletion, metavar="SHELL")

    def error(self, message: str) -> NoReturn:
        """Report wrong usage."""
        raise usage_error(self, message)

    def print_help(self, file: Any = None) -> None:
        """Print the help, or report that it cannot be written, which argparse says nothing of."""
        show_help(self, file)


def show_help(parser: argparse.ArgumentParser, file: Any = None) -> None:
    """Print the help of a tool, on standard output unless a file is given.

    Raises:
        OSError: it takes nothing.
    """
    output = sys.stdout if file is None else file
    output.write(parser.format_help())
    output.flush()


class _LogFormat(logging.Formatter):
    """Lines that begin as our errors do: `info: ...`."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {record.getMessage()}"


class TakesArguments(Protocol):
    """Protocol of an argument parser or of one of its groups."""

    def add_argument(self, *args: Any, **kwargs: Any) -> object:
        """Same as `argparse.ArgumentParser.add_argument`."""
        ...


def add_verbosity(parser: TakesArguments) -> None:
    """Give a tool `-v` and `-vv`."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="report on stderr every pass or step and its time; -vv reports more",
    )


def log_to_stderr(verbose: int) -> None:
    """Send the log of our packages to stderr until the tool ends: warnings, with 1 also info, with 2 everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogFormat())
    logger = logging.getLogger("spyre_mlir")
    logger.addHandler(handler)
    logger.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])


@contextmanager
def _logging_restored() -> Generator[None]:
    """A tool that runs inside another program, as in tests, leaves its logging as it was."""
    logger = logging.getLogger("spyre_mlir")
    handlers, level = list(logger.handlers), logger.level
    try:
        yield
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def wrong_usage(message: str, tool_name: str, hint: str | None = None) -> InputError:
    """Return the error for arguments that the tool does not accept."""
    return InputError(message, hint=hint or f"{tool_name} --help")


def usage_error(
    parser: argparse.ArgumentParser,
    message: str,
    more_flags: Iterable[str] = (),
    elsewhere: Mapping[str, str] | None = None,
) -> InputError:
    """Return the error for what a parser refuses, with the flag that was meant if one comes near.

    Args:
        parser: of the tool.
        message: of argparse.
        more_flags: flags that the parser does not know by itself.
        elsewhere: what to do instead, by a flag of other tools that this one lacks, or by how such flags begin.
    """
    actions = cast("list[argparse.Action]", vars(parser)["_actions"])  # argparse has no other way to ask
    flags = [flag for action in actions for flag in action.option_strings] + [*more_flags]
    return wrong_usage(message, parser.prog, _hint(message, flags, elsewhere or {}))


def _hint(message: str, flags: list[str], elsewhere: Mapping[str, str]) -> str | None:
    words = message.removeprefix(_UNKNOWN).split() if message.startswith(_UNKNOWN) else []
    word = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
    if word is None:
        return None
    if (known := next((text for begin, text in elsewhere.items() if word.startswith(begin)), None)) is not None:
        return known
    near = get_close_matches(word, flags, 1, _LIKE)
    return f"did you mean {near[0]}?" if near else None


def guarded(tool_name: str) -> Callable[[Main], Callable[..., int]]:
    """Decorate a tool's main so that it returns an exit code and never raises.

    The decorated function takes the arguments without the program's name (default: `sys.argv[1:]`).

    Args:
        tool_name: how the tool calls itself in messages.
    """

    def decorate(main: Main) -> Callable[..., int]:
        @functools.wraps(main)
        def run(argv: Sequence[str] | None = None) -> int:
            with streams_opened(), memory_restored(), _deep_recursion(), _logging_restored():
                return _run(tool_name, main, argv)

        return run

    return decorate


def _run(tool_name: str, main: Main, argv: Sequence[str] | None) -> int:
    try:
        return _ended(tool_name, main, argv)
    except KeyboardInterrupt:  # a second one, while the first was being said
        return INTERRUPTED


def _ended(tool_name: str, main: Main, argv: Sequence[str] | None) -> int:
    try:
        _refuse_nulls(tool_name, sys.argv[1:] if argv is None else argv)
        code = main(argv)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse: --help and --version
        return stop.code if isinstance(stop.code, int) else DONE if stop.code is None else INPUT_ERROR
    except KeyboardInterrupt:
        return _report("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return _reader_went_away()
    except ModuleNotFoundError as error:
        return _report_absent(tool_name, error)
    except (Exception, ArgSpecParseError) as error:  # noqa: BLE001 - the entry point: what it cannot name it reports as a bug
        return _report_error(tool_name, error)
    return code


def _refuse_nulls(tool_name: str, argv: Sequence[str]) -> None:
    """No path of the system holds a null character; a caller in Python may still give one."""
    for argument in argv:
        if "\0" in argument:
            raise wrong_usage(f"the argument {argument!r} holds a null character", tool_name)


def _report_error(tool_name: str, error: BaseException) -> int:
    match error:
        case SpyreError():
            return _report(_with_place(str(error), error), error.exit_code)
        case ParseError():
            return _report(span_message(error.span, error.msg), INPUT_ERROR)
        case ArgSpecParseError():
            return _report(f"pass pipeline: {error}", INPUT_ERROR)
        case InterpretationError():
            return _report(_with_place(str(error), error), UNSUPPORTED)
        case DiagnosticException():
            return _report(_with_place(str(error), error), INPUT_ERROR)
        case RecursionError():
            return _report("the input is nested too deeply for this tool", INPUT_ERROR)
        case MemoryError() | OSError(errno=errno.ENOMEM):
            return _report_memory(error)
        case OSError() if error.filename is not None:
            remedy = _REMEDIES.get(error.errno or 0)
            text = f"{error.filename}: {error.strerror}"
            return _report(text if remedy is None else f"{text}\n  try: {remedy}", INPUT_ERROR)
        case OSError() if error.errno in _NO_PLACE:
            drop_output()
            return _report(f"the results cannot be written: {error.strerror}", INPUT_ERROR)
        case _:
            return _report_bug(tool_name, error)


def _report_absent(tool_name: str, error: ModuleNotFoundError) -> int:
    if (error.name or "").partition(".")[0] != "torch":
        return _report_error(tool_name, error)
    return _report(f"{tool_name} needs torch here, and it is not installed\n  try: pip install torch", INPUT_ERROR)


def _report_memory(error: MemoryError | OSError) -> int:
    memory_to_spare()
    asked = f": {error}" if isinstance(error, MemoryError) and str(error) else ""
    text = f"the input asks for more memory than there is{asked}"
    return _report(f"{text}\n  try: --memory-limit, if the machine has more", INPUT_ERROR)


def _report_bug(tool_name: str, error: BaseException) -> int:
    if os.environ.get("SPYRE_MLIR_TRACEBACK"):
        traceback.print_exception(error, file=sys.stderr)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    text = f"internal error in {tool_name}: {type(error).__name__}: {error}{place}\n"
    text += "  this is a bug of ours, please file a bug with the command and its input"
    return _report(f"{text}; SPYRE_MLIR_TRACEBACK=1 shows where it happened", INTERNAL_ERROR)


def _reader_went_away() -> int:
    """Leave quietly when the reader of our output has seen enough, as `head` does."""
    drop_output()
    return DONE


def _report(message: str, code: int) -> int:
    lines = message.rstrip().splitlines()
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"... ({len(lines) - MAX_LINES} more lines)"]
    with suppress(OSError), redirect_stdout(sys.stderr):  # the code says it where nobody listens
        print("error: " + "\n".join(clamped(line) for line in lines))
    return code


def clamped(line: str, limit: int = 4 * MAX_COLUMNS) -> str:
    """Shorten a line that is too long to read; a source line can hold megabytes of constants."""
    return line if len(line) <= limit else f"{line[:limit]} ... ({len(line) - limit} more characters)"


def span_message(span: Span[str] | Span[bytes], message: str) -> str:
    """Format a message with file, line and column of a piece of text, the source line, and a mark under it."""
    line_start = span.input.get_start_of_line(span.start)
    raw = span.input.content[line_start : span.input.get_end_of_line(span.start)]
    line = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    return f"{span.get_location()}: {message}\n{marked(line, span.start - line_start, span.len)}"


def marked(line: str, column: int, width: int = 1) -> str:
    """Return a source line with a mark under a part of it, cut to the neighbourhood of the mark."""
    column = min(column, len(line))
    first = max(0, column - MAX_COLUMNS // 2)
    shown = line[first : first + MAX_COLUMNS].rstrip("\r\n")
    left, right = "... " if first else "", " ..." if first + MAX_COLUMNS < len(line) else ""
    marks = max(1, min(width, len(shown) - (column - first)))
    return f"  {left}{shown}{right}\n  {' ' * (len(left) + column - first)}{'^' * marks}"


def _with_place(message: str, error: BaseException) -> str:
    """Put the place of the guilty op in front, or the lines xDSL marked in its dump of the module."""
    op = getattr(error, "op", None)
    notes: list[str] = getattr(error, "__notes__", [])
    ours = [note for note in notes if len(note) < 4 * MAX_COLUMNS and "^^" not in note]
    if isinstance(op, Operation):
        prefix, source = _place_of(op)
        return "\n".join([f"{prefix}{message}{source}", *ours])
    excerpts = [excerpt for excerpt in map(_excerpt, notes) if excerpt]
    return "\n".join([message, *ours, *excerpts[:1]])


def _place_of(op: Operation) -> tuple[str, str]:
    location = op.location
    if not isinstance(location, FileLineColLoc):
        return f"'{op.name}': ", ""
    file, line, column = location.filename.data, location.line.data, location.column.data
    return f"{file}:{line}:{column}: '{op.name}': ", _source_line(file, line, column)


def _source_line(file: str, line: int, column: int) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            for number, text in enumerate(source, 1):
                if number == line:
                    return "\n" + marked(text.rstrip("\n"), column - 1)
    except OSError:  # the text came from a pipe, or the file has gone: the place alone must do
        return ""
    return ""


def _excerpt(note: str) -> str:
    """The marked lines of a dump of the IR that xDSL attached to an error, with some lines around."""
    lines = note.splitlines()
    marks = [number for number, line in enumerate(lines) if line.lstrip().startswith("^^")]
    return "\n".join(map(clamped, lines[max(0, marks[0] - 2) : marks[0] + 4])) if marks else ""


@contextmanager
def _deep_recursion() -> Generator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
