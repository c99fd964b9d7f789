"""Pieces of custom syntax that loop and kernel ops share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, SpaceAttr, parse_dim, parse_expr, print_dim

Reading = tuple[SSAValue, IndexMapAttr]


def parse_space(parser: Parser) -> SpaceAttr:
    """Reads ``[m = 128, n = 256 over 32]``."""
    return SpaceAttr(tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim(parser))))


def print_space(printer: Printer, space: SpaceAttr) -> None:
    """Writes ``[m = 128, n = 256 over 32]``."""
    with printer.in_square_brackets():
        printer.print_list(space.data, lambda d: print_dim(printer, d))


def parse_map(parser: Parser) -> IndexMapAttr:
    """Reads ``[m, h * 64 + d]``."""
    return IndexMapAttr(tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser))))


def print_map(printer: Printer, index: IndexMapAttr) -> None:
    """Writes ``[m, h * 64 + d]``."""
    with printer.in_square_brackets():
        printer.print_string(", ".join(map(str, index.data)))


def parse_reading(parser: Parser) -> Reading:
    """Reads ``%a[m, k] : type``."""
    start = parser.pos
    operand: UnresolvedOperand = parser.parse_unresolved_operand()
    index = parse_map(parser)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    return parser.resolve_operands([operand], [type_], start)[0], index


def print_reading(printer: Printer, value: SSAValue, index: IndexMapAttr) -> None:
    """Writes ``%a[m, k] : type``."""
    printer.print_ssa_value(value)
    print_map(printer, index)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


def parse_readings(parser: Parser, keyword: str) -> list[Reading]:
    """Reads ``keyword(%a[m] : t, …)``; an absent keyword means none."""
    if parser.parse_optional_keyword(keyword) is None:
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_reading(parser))


def print_readings(printer: Printer, keyword: str, values: Sequence[SSAValue], maps: Sequence[IndexMapAttr]) -> None:
    """Writes ``keyword(%a[m] : t, …)``, or nothing for no operands."""
    if not values:
        return
    printer.print_string(f" {keyword}")
    with printer.in_parens():
        printer.print_list(list(zip(values, maps, strict=True)), lambda pair: print_reading(printer, *pair))


def print_extra(printer: Printer, attributes: dict[str, Attribute]) -> None:
    """Writes the discardable attributes, if there are any."""
    printer.print_op_attributes(attributes, print_keyword=True)
