"""Names in IR text: the word at a place, the documentation of an op, and where a name is defined."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from xdsl.context import Context
from xdsl.ir import Operation

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.ops.table import OpEntry

_LONGEST = 400  # columns of a line that a hover shows
_NAME = re.compile(r'[%@#!^]?"?[A-Za-z0-9_][\w$.\-]*"?')
_FUNCTION = re.compile(r"^\s*(?:func\.func|superdsc\.sdsc|builtin\.module|module)\b", re.MULTILINE)
# A header ends the list of arguments, with or without types: of a function, a block, or a loop.
_HEADER = re.compile(r"^\s*(?:func\.func|\^\w+|[\w.]+\s+%[\w$.\-]+\s*=)[^\n]*", re.MULTILINE)


def word_at(text: str, line: int, column: int) -> str | None:
    """Return the name at a place with the mark before it, as ``%x``, ``@main`` or ``aten.relu``.

    Args:
        text: of a file.
        line: from 0.
        column: from 0; the end of a name belongs to it.
    """
    lines = text.split("\n")
    if not 0 <= line < len(lines):
        return None
    return next((found[0] for found in _NAME.finditer(lines[line]) if found.start() <= column <= found.end()), None)


def hover_text(word: str, context: Context) -> str | None:
    """Return the text that an editor shows for an op, in Markdown: its documentation, operands, results and attributes.

    Args:
        word: the name of an op.
        context: the dialects.
    """
    name = word.strip('"')
    op = context.get_optional_op(name) if "." in name and name[0].isalpha() else None
    return None if op is None else "\n\n".join(_described(name, op))


def _described(name: str, op: type[Operation]) -> Iterator[str]:
    yield f"**{name}**"
    doc = inspect.cleandoc(op.__doc__ or "")
    if doc and not doc.startswith(f"{op.__name__}("):  # the signature that dataclasses make up
        yield doc
    if issubclass(op, AtenOp) and (entry := op.ENTRY) is not None:
        yield from _of_the_table(entry)
        return
    definition = getattr(op, "get_irdl_definition", None)
    if definition is None:
        return
    parts = definition()
    for kind, names in (
        ("operands", [one for one, _ in parts.operands]),
        ("results", [one for one, _ in parts.results]),
        ("attributes", [*parts.properties, *parts.attributes]),
    ):
        if names:
            yield f"{kind}: " + ", ".join(f"`{one}`" for one in names)


def _of_the_table(entry: OpEntry) -> Iterator[str]:
    """Arguments as the schema has them, and what the op becomes."""
    arguments = (
        f"`{one.name}` {one.kind.value}" + ("" if one.required else f" = {_default(one.default)}")
        for one in entry.params
    )
    yield "arguments: " + (", ".join(arguments) or "none")
    if entry.opfunc is not None:
        formats = "DL16 and FP32" if entry.fp32 else "DL16"
        yield f"hardware function: `{entry.opfunc}` on {entry.unit.value}, {formats}"
    elif entry.decompose is not None:
        yield "a composition: `decompose-aten` rewrites it"


def _default(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def shown_definition(text: str, line: int, column: int) -> str | None:
    """Return the line that defines the name at a place, in Markdown; None if it is the same line, or there is none.

    Args:
        text: of a file.
        line: from 0.
        column: from 0.
    """
    found = definition_of(text, line, column)
    if found is None or found[0] == line:
        return None
    defining = text.split("\n")[found[0]].strip()
    cut = f"{defining[:_LONGEST]} …" if len(defining) > _LONGEST else defining
    return f"```mlir\n{cut}\n```"


def definition_of(text: str, line: int, column: int) -> tuple[int, int, int] | None:
    """Return line, first column and end of the definition of the name at a place; None if it has none in the text.

    Args:
        text: of a file.
        line: from 0.
        column: from 0.
    """
    word = word_at(text, line, column)
    if word is None or len(word) < 2:
        return None
    find = {"%": _value, "@": _symbol, "!": _alias, "#": _alias, "^": _block}.get(word[0])
    here = sum(len(one) + 1 for one in text.split("\n")[:line]) + column
    place = None if find is None else find(text, word, here)
    if place is None:
        return None
    start = place - (text.rfind("\n", 0, place) + 1)
    return text.count("\n", 0, place), start, start + len(word)


def _value(text: str, word: str, here: int) -> int | None:
    """A result stands left of an equals sign; an argument is first met in the header of its block."""
    begin = max((found.start() for found in _FUNCTION.finditer(text, 0, here)), default=0)
    name = rf"{re.escape(word)}(?![\w$.\-])"
    result = re.compile(rf"^\s*(?:%[\w$.\-]+(?::\d+)?\s*,\s*)*(?P<name>{name})(?::\d+)?[^=\n(]*=(?!=)", re.MULTILINE)
    end = text.find("\n", here)
    scope = text[begin : len(text) if end < 0 else end]
    places = [found.start("name") for found in result.finditer(scope)]
    for header in _HEADER.finditer(scope):
        if (argument := re.search(name, header[0])) is not None:
            places.append(header.start() + argument.start())
    return begin + max(places) if places else None


def _symbol(text: str, word: str, here: int) -> int | None:  # noqa: ARG001 - as the other kinds
    plain = re.escape(word.strip('@"'))
    found = re.search(rf'^\s*[\w.]+ (?:(?:private|public|nested) )?(@"?{plain}"?)(?![\w$.])', text, re.MULTILINE)
    return None if found is None else found.start(1)


def _alias(text: str, word: str, here: int) -> int | None:  # noqa: ARG001 - as the other kinds
    found = re.search(rf"^({re.escape(word)})\s*=", text, re.MULTILINE)
    return None if found is None else found.start(1)


def _block(text: str, word: str, here: int) -> int | None:
    pattern = re.compile(rf"^\s*({re.escape(word)})\s*[(:]", re.MULTILINE)
    places = [found.start(1) for found in pattern.finditer(text)]
    return min(places, key=lambda place: abs(place - here)) if places else None
