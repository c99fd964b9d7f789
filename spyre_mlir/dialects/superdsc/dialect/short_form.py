"""Fields that the custom syntax omits from an object, and their reconstruction.

Text holds: the head; the links; `fields {…}` for values that are not implied; `without [...]` for implied keys that
the file lacks; `order [...]` where the keys do not stand in the front end's order. Putting back is exact: values,
types, key order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from spyre_mlir.dialects.superdsc.dialect import compact
from spyre_mlir.dialects.superdsc.dialect.attributes import (
    parse_json,
    parse_word_list,
    parse_word_map,
    print_json,
    print_word_list,
    print_word_map,
)
from spyre_mlir.dialects.superdsc.dialect.derived_fields import implied
from spyre_mlir.dialects.superdsc.dialect.links import Links, parse_links, print_links
from spyre_mlir.dialects.superdsc.dialect.syntax import PARSE_HEAD, PRINT_HEAD, Head
from spyre_mlir.dialects.superdsc.model.fields import FIELDS, Level, in_file_order, key_of
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject, as_object, as_texts, same

PARTIAL = "partial"
"""Attribute of an op whose elided fields are not put back yet: short values, absent keys, key order."""


_VERBATIM = "="  # before an unknown key that would otherwise read as the name of a known one


def _name(level: Level, key: str) -> str:
    """Name of a key in text: the table's, or the key itself if it is unknown."""
    field = FIELDS[level].get(key)
    if field is not None:
        return field.name
    return _VERBATIM + key if key_of(level, key) is not None or key.startswith(_VERBATIM) else key


def _key(level: Level, name: str) -> str:
    if name.startswith(_VERBATIM):
        return name.removeprefix(_VERBATIM)
    return key_of(level, name) or name


@dataclass
class Spelled:
    """Contents of the text of an object.

    Args:
        fields: the explicit fields.
        links: the SSA values that stand for others.
        partial: what `complete` needs to add the rest: short values, absent keys, key order.
    """

    fields: JsonObject
    links: dict[str, list[SSAValue]] = field(default_factory=dict[str, "list[SSAValue]"])
    partial: JsonObject = field(default_factory=dict[str, Json])


def print_fields(
    printer: Printer, level: Level, fields: JsonObject, context: FileContext, links: Links | None = None
) -> None:
    """Print an object: its head, its links, then every field that is not implied."""
    shown = PRINT_HEAD[level](printer, fields, context)
    shown |= print_links(printer, level, fields, links or {})
    derived = implied(level, fields, context)
    rest = {
        key: value
        for key, value in fields.items()
        if key not in shown and not (key in derived and same(derived[key], value))
    }
    if rest:
        printer.print_string(" fields ")
        named = {_name(level, key): value for key, value in rest.items()}
        print_word_map(printer, named, lambda value: print_json(printer, value))
    absent = [key for key in derived if key not in fields]
    if absent:
        printer.print_string(" without ")
        print_word_list(printer, [_name(level, key) for key in absent])
    # The order that `complete` will come to: head, explicit, implied, then sorted.
    gathered = [*shown, *rest, *(key for key in derived if key in fields)]
    if in_file_order(level, list(dict.fromkeys(gathered))) != list(fields):
        printer.print_string(" order ")
        print_word_list(printer, [_name(level, key) for key in fields])


def parse_fields(parser: Parser, level: Level) -> Spelled:
    """Parse an object's text."""
    head = Head()
    PARSE_HEAD[level](parser, head)
    links, empty = parse_links(parser, level)
    spelled = Spelled(head.fields | empty, links, {"short": head.short})
    if parser.parse_optional_keyword("fields"):
        named = parse_word_map(parser, lambda: parse_json(parser))
        spelled.fields |= {_key(level, name): value for name, value in named.items()}
    for word in ("without", "order"):
        if parser.parse_optional_keyword(word):
            names = as_texts(parse_word_list(parser)) or []
            spelled.partial[word] = [_key(level, name) for name in names]
    return spelled


def complete(level: Level, fields: JsonObject, partial: JsonObject, context: FileContext) -> JsonObject:
    """Return all fields of an object, from the explicit ones and its context."""
    short = as_object(partial.get("short")) or {}
    spelled = dict(fields)
    for key, value in short.items():
        spelled[key] = compact.expand(level, value, context)
    absent = as_texts(partial.get("without")) or []
    derived = {key: value for key, value in implied(level, spelled, context).items() if key not in absent}
    merged: JsonObject = derived | spelled
    order = as_texts(partial.get("order")) or []
    gathered = list(dict.fromkeys([*spelled, *derived]))
    keys = order if sorted(order) == sorted(gathered) else in_file_order(level, gathered)
    return {key: merged[key] for key in keys}
