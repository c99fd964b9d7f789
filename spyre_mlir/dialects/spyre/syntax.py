"""Directives of `assembly_format` that loop and kernel ops share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from typing_extensions import override
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OperandVariable,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    ResultVariable,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, SpaceAttr, parse_dim, parse_expr, print_dim

# An operand, its map and its type.
MappedOperand = tuple[UnresolvedOperand, IndexMapAttr, Attribute]


@irdl_custom_directive
class Space(CustomDirective):
    """``[m = 128, n = 256 over 32]``."""

    attribute: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim(parser))
        self.attribute.set(state, SpaceAttr(tuple(dims)))

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        space = self.attribute.get(op)
        assert isinstance(space, SpaceAttr)
        state.print_whitespace(printer)
        with printer.in_square_brackets():
            printer.print_list(space.data, lambda d: print_dim(printer, d))


@irdl_custom_directive
class ReadAt(CustomDirective):
    """``%a[m, k] : type``: an operand, its map, which is added to the op's maps, and its type."""

    operand: OperandVariable
    type: TypeDirective
    maps: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        operand, index, type_ = _parse_reading(parser)
        self.operand.set(state, operand)
        self.type.set(state, (type_,))
        _add_maps(self.maps, state, [index])

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        _print_reading(printer, self.operand.get(op), _maps(self.maps, op)[_place(self.operand, op)])


@irdl_custom_directive
class AllReadAt(CustomDirective):
    """``%a[m, k] : type, %b[k, n] : type``: operands that come first, each as in `ReadAt`."""

    operands: VariadicOperandVariable
    types: TypeDirective
    maps: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        found = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_reading(parser))
        self._set(state, found)

    @override
    def set_empty(self, state: ParsingState) -> None:
        self._set(state, [])

    def _set(self, state: ParsingState, found: Sequence[MappedOperand]) -> None:
        self.operands.set(state, [operand for operand, _, _ in found])
        self.types.set(state, [type_ for _, _, type_ in found])
        _add_maps(self.maps, state, [index for _, index, _ in found])

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        values = self.operands.get(op)
        state.print_whitespace(printer)
        pairs = zip(values, _maps(self.maps, op)[: len(values)], strict=True)
        printer.print_list(pairs, lambda pair: _print_reading(printer, *pair))

    @override
    def is_present(self, op: IRDLOperation) -> bool:
        return self.operands.is_present(op)

    @override
    def is_anchorable(self) -> bool:
        return True


@irdl_custom_directive
class WrittenAt(CustomDirective):
    """``[m, h * 64 + d]``: the map of the result, the last of the op's maps."""

    maps: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        _add_maps(self.maps, state, [_parse_map(parser)])

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        _print_map(printer, _maps(self.maps, op)[-1])


@irdl_custom_directive
class SameType(CustomDirective):
    """No text: an operand, if there is one, has the type of the result."""

    operand: OptionalOperandVariable
    type: TypeDirective
    result: TypeDirective

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        result = self.result.inner
        assert isinstance(result, ResultVariable)
        self.type.set(state, (state.result_types[result.index] or ()) if state.operands[self.operand.index] else ())

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


@irdl_custom_directive
class SharedFirst(CustomDirective):
    """No text: the properties of all kernels stand before those of one, as constructors list them.

    The generic form shows the order, and two ops are told apart by it.
    """

    space: AttributeVariable
    maps: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        names = (self.space.name, self.maps.name)
        state.properties = {name: state.properties[name] for name in names} | state.properties

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


def _add_maps(variable: AttributeVariable, state: ParsingState, maps: Sequence[IndexMapAttr]) -> None:
    variable.set(state, ArrayAttr([*_elements(state.properties.get(variable.name)), *maps]))


def _maps(variable: AttributeVariable, op: IRDLOperation) -> Sequence[Attribute]:
    return _elements(variable.get(op))


def _elements(array: Attribute | None) -> tuple[Attribute, ...]:
    return cast("ArrayAttr[Attribute]", array).data if isinstance(array, ArrayAttr) else ()


def _place(operand: OperandVariable, op: IRDLOperation) -> int:
    """Number of an operand of an op whose operands are one by one, from the end if it is the last."""
    return operand.index if operand.index + 1 < len(op.get_irdl_definition().operands) else len(op.operands) - 1


def _parse_map(parser: Parser) -> IndexMapAttr:
    return IndexMapAttr(tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser))))


def _print_map(printer: Printer, index: Attribute) -> None:
    assert isinstance(index, IndexMapAttr)
    with printer.in_square_brackets():
        printer.print_string(", ".join(map(str, index.data)))


def _parse_reading(parser: Parser) -> MappedOperand:
    operand = parser.parse_unresolved_operand()
    index = _parse_map(parser)
    parser.parse_punctuation(":")
    return operand, index, parser.parse_type()


def _print_reading(printer: Printer, value: SSAValue, index: Attribute) -> None:
    printer.print_ssa_value(value)
    _print_map(printer, index)
    printer.print_string(" : ")
    printer.print_attribute(value.type)
