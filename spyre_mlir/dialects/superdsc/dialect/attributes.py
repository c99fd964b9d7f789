"""`#superdsc.json<…>`: any JSON value as an attribute, and the spelling of JSON in the IR text.

Strings are ASCII with byte escapes, because stock parsers read a non-ASCII string back as something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from typing_extensions import override
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject, spell, unspell

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_LITERALS: dict[str, Json] = {"null": None, "true": True, "false": False}


@irdl_attr_definition
class JsonAttr(Data[str]):
    """A JSON value; its data is the compact spelling, so equality is strict and sees key order."""

    name = "superdsc.json"

    @classmethod
    def of(cls, value: Json) -> JsonAttr:
        """Return the attribute that mirrors a value."""
        return cls(spell(value))

    @property
    def value(self) -> Json:
        """Return a fresh copy of the value."""
        return unspell(self.data)

    @property
    def object(self) -> JsonObject:
        """Return the value where only an object is legal; anything else reads as an empty one."""
        value = self.value
        return value if isinstance(value, dict) else {}

    @classmethod
    @override
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return spell(parse_json(parser))

    @override
    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_json(printer, self.value)


def print_text(printer: Printer, text: str) -> None:
    """Print a quoted string; lone surrogates survive as bytes."""
    printer.print_bytes_literal(text.encode("utf-8", "surrogatepass"))


def parse_optional_text(parser: AttrParser) -> str | None:
    """Parse a quoted string, if present."""
    text = parser.parse_optional_str_literal()
    if text is not None:
        return text
    raw = parser.parse_optional_bytes_literal()
    return None if raw is None else raw.decode("utf-8", "surrogatepass")


def print_word(printer: Printer, text: str) -> None:
    """Print a bare word if the text is one, else a quoted string."""
    if _WORD.fullmatch(text):
        printer.print_string(text)
    else:
        print_text(printer, text)


def parse_word(parser: AttrParser) -> str:
    """Parse a bare word or a quoted string."""
    return parser.expect(
        lambda: parser.parse_optional_identifier() or parse_optional_text(parser), "expected a word or a string"
    )


def print_json(printer: Printer, value: Json) -> None:
    """Print a JSON value."""
    match value:
        case dict():
            with printer.in_braces():
                printer.print_list(value.items(), lambda item: _print_pair(printer, *item))
        case list():
            with printer.in_square_brackets():
                printer.print_list(value, lambda item: print_json(printer, item))
        case str():
            print_text(printer, value)
        case float():
            printer.print_string(_float_text(value))
        case None | bool() | int():
            printer.print_string(spell(value))


def _print_pair(printer: Printer, key: str, value: Json) -> None:
    print_text(printer, key)
    printer.print_string(": ")
    print_json(printer, value)


def _float_text(value: float) -> str:
    """Shortest decimal that reads back exactly, with the point that MLIR asks for."""
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def parse_json(parser: AttrParser) -> Json:
    """Parse a JSON value."""
    pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_pair(parser))
    if pairs is not None:
        return _object(parser, pairs)
    items = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_json(parser))
    if items is not None:
        return items
    word = parser.parse_optional_keyword_in(_LITERALS)
    if word is not None:
        return _LITERALS[word]
    text = parse_optional_text(parser)
    return text if text is not None else parser.parse_number(context_msg=" in a JSON value")


def _parse_pair(parser: AttrParser) -> tuple[str, Json]:
    key = parser.expect(lambda: parse_optional_text(parser), "expected a quoted key")
    parser.parse_punctuation(":")
    return key, parse_json(parser)


def _object(parser: AttrParser, pairs: list[tuple[str, Json]]) -> JsonObject:
    result = dict(pairs)
    if len(result) != len(pairs):
        parser.raise_error("a key occurs twice in one object")
    return result


def parse_word_map(parser: AttrParser, value: Callable[[], Json]) -> JsonObject:
    """Parse `{word = value, …}`."""

    def pair() -> tuple[str, Json]:
        key = parse_word(parser)
        parser.parse_punctuation("=")
        return key, value()

    return _object(parser, parser.parse_comma_separated_list(parser.Delimiter.BRACES, pair))


def print_word_map(printer: Printer, items: JsonObject, value: Callable[[Json], None]) -> None:
    """Print `{word = value, …}`."""

    def pair(item: tuple[str, Json]) -> None:
        print_word(printer, item[0])
        printer.print_string(" = ")
        value(item[1])

    with printer.in_braces():
        printer.print_list(items.items(), pair)


def print_word_list(printer: Printer, words: list[str]) -> None:
    """Print `[word, …]`."""
    with printer.in_square_brackets():
        printer.print_list(words, lambda word: print_word(printer, word))


def parse_word_list(parser: AttrParser) -> list[Json]:
    """Parse `[word, …]`."""
    return list(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_word(parser)))
