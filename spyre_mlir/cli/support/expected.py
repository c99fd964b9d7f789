"""`--verify-diagnostics`: errors of a file against its `expected-error` comments, as in mlir-opt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError

from spyre_mlir.errors import InputError, SpyreError
from spyre_mlir.sizes import counted
from spyre_mlir.text.render import decode

_KINDS = "(error|warning|remark|note)"
_COMMENT = re.compile(f"expected-{_KINDS}" + r"(-re)?\s*(?:@([+-]\d+|above|below|unknown))?\s*\{\{(.*)\}\}\s*$")
_BEGINNING = re.compile(rf"//\s*expected-{_KINDS}")
_PLACE = re.compile(r'"?:(\d+)\b')
_PIECE = re.compile(r"\{\{(.*?)\}\}")
_SYNTAX = "write '// expected-error@+1 {{a part of the message}}'; the place is @+N, @-N, @above, @below or @unknown"


@dataclass(frozen=True)
class Expected:
    """An `expected-error` comment.

    Attributes:
        written: the line of the comment.
        line: the line that the error names; None if it is to name none.
        pattern: the part of the message that has to occur.
        text: the part as the comment has it.
    """

    written: int
    line: int | None
    pattern: re.Pattern[str]
    text: str

    def fits(self, error: Exception, lines: frozenset[int]) -> bool:
        """Return whether an error that names these lines is the expected one."""
        placed = self.line in lines if self.line is not None else not lines
        return placed and self.pattern.search(_message(error)) is not None


@dataclass(frozen=True)
class Chunk:
    """A piece of the input.

    Attributes:
        text: its bytes.
        offset: lines of the file before it.
    """

    text: bytes
    offset: int


def verify_diagnostics(name: str, chunks: Iterable[Chunk], process: Callable[[Chunk], None]) -> None:
    """Process every chunk; its errors and no others have to be announced by its comments.

    Args:
        name: of the file, as errors spell it.
        chunks: the pieces of the file; each ends with its first error.
        process: reads a chunk and runs the passes.

    Raises:
        InputError: an error is not expected, or an expected one does not come; lists them all.
    """
    differences: list[str] = []
    for chunk in chunks:
        expected = expected_errors(chunk, name)
        differences += _differences(name, expected, _error_of(process, chunk))
    if differences:
        count = counted(len(differences), "difference")
        raise InputError(f"{count} from the expected errors:\n  " + "\n  ".join(differences), hint=_SYNTAX)


def _error_of(process: Callable[[Chunk], None], chunk: Chunk) -> Exception | None:
    try:
        process(chunk)
    except (SpyreError, DiagnosticException, ParseError) as error:
        return error
    return None


def _differences(name: str, expected: list[Expected], error: Exception | None) -> list[str]:
    lines = frozenset[int]() if error is None else lines_of(error, name)
    fitting = [one for one in expected if error is not None and one.fits(error, lines)]
    missing = [
        f"{name}:{one.written}: the expected error '{one.text}' {_at(one)}did not come"
        for one in expected
        if one not in fitting
    ]
    if error is None or fitting:
        return missing
    place = f"{name}:{min(lines)}" if lines else f"{name}, at no line of it"
    return [*missing, f"{place}: unexpected error: " + _message(error).replace("\n", "\n    ")]


def _at(one: Expected) -> str:
    return f"at line {one.line} " if one.line is not None else "at no line "


def _message(error: Exception) -> str:
    return error.msg if isinstance(error, ParseError) else str(error)


def lines_of(error: Exception, name: str) -> frozenset[int]:
    """Return the lines of a file that an error names, in its message or by its op.

    Args:
        error: the error of a chunk.
        name: of the file, as errors spell it.
    """
    texts = [str(error)]
    if isinstance(error, ParseError):
        texts = [str(error.span.get_location())]
    op = getattr(error, "op", None)
    if isinstance(op, Operation) and isinstance(op.location, FileLineColLoc):
        texts.append(f"{op.location.filename.data}:{op.location.line.data}")
    named = (found for text in texts for part in text.split(name)[1:] if (found := _PLACE.match(part)))
    return frozenset(int(found[1]) for found in named)


def expected_errors(chunk: Chunk, name: str) -> list[Expected]:
    """Return the expected errors of a chunk, in the order of their comments.

    Raises:
        InputError: a comment begins with `expected-` and is none that the tool reads.
        ReadError: the bytes are not UTF-8.
    """
    found: list[Expected] = []
    waiting: list[tuple[int, re.Match[str]]] = []  # comments with @below, in front of the line that they mean
    plain = chunk.offset + 1  # the last line without a comment of this kind
    for number, line in enumerate(decode(chunk.text, name, chunk.offset).split("\n"), chunk.offset + 1):
        match = _COMMENT.search(line)
        if match is None:
            _refuse_other_spelling(line, f"{name}:{number}")
            found += [_expected(written, number, earlier) for written, earlier in waiting]
            waiting, plain = [], number
        elif match[1] != "error":
            message = f"the tool has no diagnostics of the kind 'expected-{match[1]}', only errors"
            raise InputError(message, where=f"{name}:{number}", hint=_SYNTAX)
        elif match[3] == "below":
            waiting.append((number, match))
        else:
            found.append(_expected(number, _line(number, plain, match[3]), match))
    return [*found, *(_expected(written, written + 1, match) for written, match in waiting)]


def _refuse_other_spelling(line: str, where: str) -> None:
    if _BEGINNING.search(line):
        raise InputError("this comment about an expected error cannot be read", where=where, hint=_SYNTAX)


def _line(number: int, plain: int, place: str | None) -> int | None:
    if place == "unknown":
        return None
    if place == "above":
        return plain
    return number + int(place or 0)


def _expected(written: int, line: int | None, match: re.Match[str]) -> Expected:
    return Expected(written, line, _pattern(match[4], is_pattern=match[2] is not None), match[4])


def _pattern(text: str, *, is_pattern: bool) -> re.Pattern[str]:
    """Return the pattern of a text; in `expected-error-re`, `{{…}}` within it are regular expressions."""
    if not is_pattern:
        return re.compile(re.escape(text))
    pieces = _PIECE.split(text)
    try:
        return re.compile("".join(piece if odd % 2 else re.escape(piece) for odd, piece in enumerate(pieces)))
    except re.error as error:
        raise InputError(f"'{text}' holds no regular expression: {error}", hint=_SYNTAX) from error
