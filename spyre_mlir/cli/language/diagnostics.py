"""Errors of IR text with their ranges: those of the parser, and those of the verifier."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError

from spyre_mlir.errors import SpyreError
from spyre_mlir.text.render import parse_module, verify_module

_UNDEFINED = re.compile(r"values used but not defined: \[(%[^\],\s]+)")
_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)


@dataclass(frozen=True)
class Diagnosis:
    """An error in a text.

    Attributes:
        line: of its beginning, from 0.
        start: first column, from 0.
        end: one behind the last column of this line.
        message: what is wrong.
    """

    line: int
    start: int
    end: int
    message: str


def problems_of(text: str, context: Context) -> list[Diagnosis]:
    """Return the first error of every piece of a text; `// -----` separates pieces, as for spyre-opt.

    Args:
        text: of a file.
        context: the dialects.
    """
    found: list[Diagnosis] = []
    offset = 0
    for piece in _SEPARATOR.split(text):
        problem = _problem(piece, context)
        if problem is not None:
            found.append(Diagnosis(problem.line + offset, problem.start, problem.end, problem.message))
        offset += piece.count("\n")
    return found


def _problem(text: str, context: Context) -> Diagnosis | None:
    if all(not line.strip() or line.lstrip().startswith("//") for line in text.splitlines()):
        return None
    try:
        verify_module(parse_module(text, context))
    except ParseError as error:
        if (undefined := _UNDEFINED.search(error.msg)) is not None:  # reported at the end, where they are still missing
            first = re.search(rf"{re.escape(undefined[1])}(?![\w$.\-])", text)
            return None if first is None else _at(text, first.start(), first.end(), error.msg)
        return _at(text, error.span.start, error.span.end, error.msg)
    except (DiagnosticException, SpyreError) as error:
        start, end = _range_of(getattr(error, "op", None), text)
        return _at(text, start, end, str(error))
    except RecursionError:
        return _at(text, 0, 0, "the text is nested too deeply")
    return None


def _at(text: str, start: int, end: int, message: str) -> Diagnosis:
    before = text.rfind("\n", 0, start) + 1
    behind = text.find("\n", start)
    line_end = len(text) if behind < 0 else behind
    return Diagnosis(text.count("\n", 0, start), start - before, max(min(end, line_end), start + 1) - before, message)


def _range_of(op: object, text: str) -> tuple[int, int]:
    """The line of an op from the op on; the first line if the text does not say where it is."""
    if not isinstance(op, Operation) or not isinstance(op.location, FileLineColLoc):
        return 0, 0
    lines = text.split("\n")
    number, column = op.location.line.data - 1, op.location.column.data - 1
    if op.location.filename.data != "<text>" or not 0 <= number < len(lines):  # the place in a model
        return 0, 0
    start = sum(len(line) + 1 for line in lines[:number])
    return start + column, start + len(lines[number])
