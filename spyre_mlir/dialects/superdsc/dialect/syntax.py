"""The heads of the ops' custom syntax: the deciding fields of each object, in a readable line.

A head is printed only if all its fields are well-formed, and reads back as exactly those fields. Everything else an
object holds is implied, or printed as plain JSON after the head.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.parser import Parser
from xdsl.printer import Printer

from spyre_mlir.dialects.superdsc.dialect import compact
from spyre_mlir.dialects.superdsc.dialect.attributes import (
    parse_word,
    parse_word_list,
    parse_word_map,
    print_word,
    print_word_list,
    print_word_map,
)
from spyre_mlir.dialects.superdsc.dialect.layouts import (
    parse_class,
    parse_numbers,
    plain_class,
    print_class,
    print_numbers,
)
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext, plain_sizes
from spyre_mlir.dialects.superdsc.model.json_value import (
    Json,
    JsonObject,
    as_int,
    as_int_map,
    as_ints,
    as_object,
    as_text,
    as_texts,
    same,
)

Fields = JsonObject
Shown = set[str]

_UNITS = ("sfp", "pt")


class Head:
    """Fields read from a head: exact values, and short values that need a context to become exact."""

    def __init__(self) -> None:
        self.fields: Fields = {}
        self.short: Fields = {}


def _print_int(printer: Printer) -> Callable[[Json], None]:
    return lambda value: printer.print_string(str(value))


def _parse_ints(parser: Parser) -> list[Json]:
    return list(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_integer(False)))


# superdsc.sdsc ------------------------------------------------------------------------------------------------------


def _print_sdsc(printer: Printer, fields: Fields, _context: FileContext) -> Shown:
    splits = as_int_map(fields.get(keys.SPLITS))
    if splits is None:
        return set()
    printer.print_string(" splits ")
    print_numbers(printer, splits)
    return {keys.SPLITS}


def _parse_sdsc(parser: Parser, head: Head) -> None:
    if parser.parse_optional_keyword("splits"):
        head.fields[keys.SPLITS] = dict(parse_numbers(parser))


# superdsc.dsc -------------------------------------------------------------------------------------------------------


def _print_dsc(printer: Printer, fields: Fields, _context: FileContext) -> Shown:
    shown: Shown = set()
    sizes = plain_sizes(fields.get(keys.SIZES))
    if sizes is not None:
        printer.print_string(" sizes ")
        print_numbers(printer, sizes)
        shown.add(keys.SIZES)
    classes = as_object(fields.get(keys.CLASSES))
    if classes is not None and all(plain_class(entry) for entry in classes.values()):
        printer.print_string(" classes ")
        print_word_map(printer, classes, lambda entry: print_class(printer, entry))
        shown.add(keys.CLASSES)
    return shown


def _parse_dsc(parser: Parser, head: Head) -> None:
    if parser.parse_optional_keyword("sizes"):
        head.fields[keys.SIZES] = derived_values.named_sizes(parse_numbers(parser))
    if parser.parse_optional_keyword("classes"):
        head.fields[keys.CLASSES] = parse_word_map(parser, lambda: parse_class(parser))


# superdsc.allocate --------------------------------------------------------------------------------------------------


def _print_allocate(printer: Printer, fields: Fields, context: FileContext) -> Shown:
    index, component = as_int(fields.get(keys.INDEX)), as_text(fields.get(keys.COMPONENT))
    order = as_texts(fields.get(keys.ORDER))
    if index is None or component is None or order is None:
        return set()
    printer.print_string(f" {index} in ")
    print_word(printer, component)
    printer.print_string(" ")
    print_word_list(printer, order)
    shown = {keys.INDEX, keys.COMPONENT, keys.ORDER}
    if same(fields.get(keys.SYMBOLIC), 1):
        printer.print_string(" symbolic")
        shown.add(keys.SYMBOLIC)
    short = compact.shorten(Level.ALLOCATE, keys.START, fields.get(keys.START), context)
    if short is not None:
        printer.print_string(" start ")
        _print_start(printer, short)
        shown.add(keys.START)
    return shown


def _print_start(printer: Printer, short: Json) -> None:
    if isinstance(short, list):
        with printer.in_square_brackets():
            printer.print_list(short, _print_int(printer))
        return
    start = as_object(short) or {}
    printer.print_string(str(start.get("base")))
    for label, step in (as_object(start.get("steps")) or {}).items():
        printer.print_string(f" + {step} * ")
        print_word(printer, label)


def _parse_allocate(parser: Parser, head: Head) -> None:
    index = parser.parse_optional_integer(allow_boolean=False)
    if index is None:
        return
    head.fields[keys.INDEX] = index
    parser.parse_keyword("in")
    head.fields[keys.COMPONENT] = parse_word(parser)
    head.fields[keys.ORDER] = parse_word_list(parser)
    if parser.parse_optional_keyword("symbolic"):
        head.fields[keys.SYMBOLIC] = 1
    if parser.parse_optional_keyword("start"):
        head.short[keys.START] = _parse_start(parser)


def _parse_start(parser: Parser) -> Json:
    listed = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_integer(False))
    if listed is not None:
        return list(listed)
    base = parser.parse_integer(False)
    steps: JsonObject = {}
    while parser.parse_optional_punctuation("+"):
        step = parser.parse_integer(False)
        parser.parse_punctuation("*")
        steps[parse_word(parser)] = step
    return {"base": base, "steps": steps}


# superdsc.labeled_ds ------------------------------------------------------------------------------------------------


def _print_labeled_ds(printer: Printer, fields: Fields, _context: FileContext) -> Shown:
    index, layout = as_int(fields.get(keys.INDEX)), as_text(fields.get(keys.CLASS))
    scale, name = as_ints(fields.get(keys.SCALE)), as_text(fields.get(keys.FORMAT))
    if index is None or layout is None or scale is None or name is None:
        return set()
    printer.print_string(f" {index} ")
    print_word(printer, layout)
    printer.print_string(" ")
    print_word(printer, name)
    printer.print_string(f" scale {scale}")
    return {keys.INDEX, keys.CLASS, keys.SCALE, keys.FORMAT}


def _parse_labeled_ds(parser: Parser, head: Head) -> None:
    index = parser.parse_optional_integer(allow_boolean=False)
    if index is None:
        return
    head.fields |= {keys.INDEX: index, keys.CLASS: parse_word(parser), keys.FORMAT: parse_word(parser)}
    parser.parse_keyword("scale")
    head.fields[keys.SCALE] = _parse_ints(parser)


# superdsc.constant --------------------------------------------------------------------------------------------------


def _print_constant(printer: Printer, fields: Fields, context: FileContext) -> Shown:
    name, kind = as_text(fields.get(keys.NAME)), as_text(fields.get(keys.FORMAT))
    bits = compact.shorten(Level.CONSTANT, keys.DATA, fields.get(keys.DATA), context)
    if name is None or kind is None or bits is None:
        return set()
    printer.print_string(" bits ")
    printer.print_string(f"{bits} of ")
    print_word(printer, kind)
    printer.print_string(" named ")
    print_word(printer, name)
    return {keys.NAME, keys.FORMAT, keys.DATA}


def _parse_constant(parser: Parser, head: Head) -> None:
    if parser.parse_optional_keyword("bits"):
        head.short[keys.DATA] = parser.parse_integer(False)
        parser.parse_keyword("of")
        head.fields[keys.FORMAT] = parse_word(parser)
        parser.parse_keyword("named")
        head.fields[keys.NAME] = parse_word(parser)


# superdsc.compute ---------------------------------------------------------------------------------------------------


def _print_compute(printer: Printer, fields: Fields, _context: FileContext) -> Shown:
    unit, name = as_text(fields.get(keys.UNIT)), as_text(fields.get(keys.FUNCTION))
    attributes = as_object(fields.get(keys.ATTRIBUTES)) or {}
    kind = as_text(attributes.get(keys.FORMAT))
    if unit not in _UNITS or name is None or kind is None:
        return set()
    if not same(attributes, derived_values.operation_attributes(kind)):
        return set()
    for word in (unit, name, kind):
        printer.print_string(" ")
        print_word(printer, word)
    return {keys.UNIT, keys.FUNCTION, keys.ATTRIBUTES}


def _parse_compute(parser: Parser, head: Head) -> None:
    unit = parser.parse_optional_keyword_in(_UNITS)
    if unit is None:
        return
    head.fields |= {
        keys.UNIT: unit,
        keys.FUNCTION: parse_word(parser),
        keys.ATTRIBUTES: derived_values.operation_attributes(parse_word(parser)),
    }


PRINT_HEAD: dict[Level, Callable[[Printer, Fields, FileContext], Shown]] = {
    Level.SDSC: _print_sdsc,
    Level.DSC: _print_dsc,
    Level.ALLOCATE: _print_allocate,
    Level.LABELED_DS: _print_labeled_ds,
    Level.CONSTANT: _print_constant,
    Level.COMPUTE: _print_compute,
}

PARSE_HEAD: dict[Level, Callable[[Parser, Head], None]] = {
    Level.SDSC: _parse_sdsc,
    Level.DSC: _parse_dsc,
    Level.ALLOCATE: _parse_allocate,
    Level.LABELED_DS: _parse_labeled_ds,
    Level.CONSTANT: _parse_constant,
    Level.COMPUTE: _parse_compute,
}
