"""Pieces of the ktdp assembly that several ops share.

An op whose dictionary holds properties, in the order and the affine grammar of the front end, is parsed and printed by
hand: `attr-dict` lists discardable attributes first, and spells affine ones as MLIR does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override
from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, IndexType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from spyre_mlir.dialects.ktdp.affine import map_text, normal_map, normal_set, set_text
from spyre_mlir.dialects.ktdp.attributes import AccessTileType, TileFutureType


def parse_dictionary(
    parser: Parser, known: Mapping[str, type[Attribute]], *, optional: Sequence[str] = ()
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Parse a dictionary of attributes: the op's own, then all other ones.

    Args:
        parser: stands at the brace, or at whatever follows.
        known: the class each known name must have.
        optional: the known names that may be absent.
    """
    properties: dict[str, Attribute] = {}
    others: dict[str, Attribute] = {}
    for name, value in parser.parse_optional_attr_dict().items():
        if name not in known:
            others[name] = value
            continue
        if not isinstance(value, known[name]):
            parser.raise_error(f"{name}: expected {_words(known[name])}, got {value}")
        properties[name] = normal(value)
    for name in known:
        if name not in properties and name not in optional:
            parser.raise_error(f"expected {name} among the attributes")
    return properties, others


def _words(kind: type[Attribute]) -> str:
    return getattr(kind, "name", "a memory space of this dialect")


def normal(value: Attribute) -> Attribute:
    """Return the attribute with affine expressions in canonical order."""
    match value:
        case AffineSetAttr():
            return normal_set(value)
        case AffineMapAttr():
            return normal_map(value)
        case _:
            return value


def print_dictionary(printer: Printer, attributes: Mapping[str, Attribute | None]) -> None:
    """Print a dictionary of attributes on one line; nothing when there are none."""
    present = [(name, value) for name, value in attributes.items() if value is not None]
    if not present:
        return

    def print_entry(entry: tuple[str, Attribute]) -> None:
        name, value = entry
        printer.print_identifier_or_string_literal(name)
        if isinstance(value, UnitAttr):
            return
        printer.print_string(" = ")
        print_value(printer, value)

    printer.print_string(" {")
    printer.print_list(present, print_entry)
    printer.print_string("}")


def print_value(printer: Printer, value: Attribute) -> None:
    """Print an attribute, affine ones in the grammar that all readers of KTIR accept."""
    match value:
        case AffineSetAttr():
            printer.print_string(set_text(value.data))
        case AffineMapAttr():
            printer.print_string(map_text(value.data))
        case _:
            printer.print_attribute(value)


def parse_tile_type(parser: Parser) -> Attribute:
    """An access tile type; `<4x64xindex>` is short for `!ktdp.access_tile<4x64xindex>`."""
    if parser.parse_optional_punctuation("<") is None:
        return parser.parse_type()
    shape, element = parser.parse_ranked_shape()
    parser.parse_punctuation(">")
    return AccessTileType(shape, element)


def parse_index_operands(parser: Parser) -> list[SSAValue]:
    """Operands of type index in square brackets."""
    found = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    return resolve_indices(parser, found)


def resolve_indices(parser: Parser, found: Sequence[UnresolvedOperand]) -> list[SSAValue]:
    """The values of operands of type index."""
    return [parser.resolve_operand(operand, IndexType()) for operand in found]


def print_values(printer: Printer, values: Sequence[SSAValue]) -> None:
    """Values in square brackets."""
    with printer.in_square_brackets():
        printer.print_list(values, printer.print_ssa_value)


def print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Types, with commas."""
    printer.print_list(types, printer.print_attribute)


@irdl_custom_directive
class TileType(CustomDirective):
    """The type of an access tile, whose name may be left out."""

    type: TypeDirective

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.type.set(state, (parse_tile_type(parser),))

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)


@irdl_custom_directive
class FutureType(CustomDirective):
    """The type of a future; `<...>` is short for `!ktdp.tile_future<...>`."""

    type: TypeDirective

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.type.set(state, (_parse_future(parser),))

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)


@irdl_custom_directive
class Produced(CustomDirective):
    """``: partial -> future``; the newest front end omits the produced type, which the future implies."""

    type: TypeDirective

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_punctuation(":") is not None:
            parser.parse_type()
        parser.parse_punctuation("->")
        self.type.set(state, (_parse_future(parser),))

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        (future,) = self.type.get(op)
        assert isinstance(future, TileFutureType)
        printer.print_string(" : ")
        printer.print_attribute(future.partial)
        printer.print_string(" ->")
        self.type.print(printer, state, op)


@irdl_custom_directive
class Members(CustomDirective):
    """A set of cores of a group."""

    attribute: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        found = normal(parser.parse_attribute())
        if not isinstance(found, AffineSetAttr):
            parser.raise_error(f"{self.attribute.name}: expected an affine_set, got {found}")
        self.attribute.set(state, found)

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        members = self.attribute.get(op)
        assert members is not None
        state.print_whitespace(printer)
        print_value(printer, members)


def _parse_future(parser: Parser) -> Attribute:
    if parser.parse_optional_punctuation("<") is None:
        return parser.parse_type()
    parameters = TileFutureType.parse_inside(parser)
    parser.parse_punctuation(">")
    return TileFutureType.new(parameters)
