"""Shared directives of `assembly_format`: what a keyword introduces must be present."""

from __future__ import annotations

from typing_extensions import override
from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer


class AttributeDirective(CustomDirective):
    """Base of directives of one attribute; an optional group may be anchored at it."""

    attribute: AttributeVariable

    @override
    def is_present(self, op: IRDLOperation) -> bool:
        return self.attribute.is_present(op)

    @override
    def is_anchorable(self) -> bool:
        return self.attribute.is_anchorable()


@irdl_custom_directive
class Quoted(AttributeDirective):
    """A quoted string and nothing else, where ``$attribute`` alone would accept any attribute."""

    attribute: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.attribute.set(state, StringAttr(parser.parse_str_literal()))

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        text = self.attribute.get(op)
        assert isinstance(text, StringAttr)
        state.print_whitespace(printer)
        printer.print_string_literal(text.data)


@irdl_custom_directive
class Arguments(CustomDirective):
    """``{alpha = 2 : i64}``: a dictionary that is a property, in the order given; nothing if it is absent."""

    attribute: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        if found := parser.parse_optional_attr_dict():
            self.attribute.set(state, DictionaryAttr(found))

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        given = self.attribute.get(op)
        if isinstance(given, DictionaryAttr):
            printer.print_op_attributes(given.data)
            state.last_was_punctuation, state.should_emit_space = False, True


@irdl_custom_directive
class Number(AttributeDirective):
    """A required attribute, where ``$attribute`` alone would accept its absence if the op can do without."""

    attribute: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.attribute.set(state, parser.parse_attribute())

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.attribute.print(printer, state, op)


@irdl_custom_directive
class ValueDirective(CustomDirective):
    """A required operand, where ``$operand`` alone would accept its absence if the op can do without."""

    operand: OptionalOperandVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.operand.set(state, parser.parse_unresolved_operand())

    @override
    def set_empty(self, state: ParsingState) -> None:
        self.operand.set_empty(state)

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.operand.print(printer, state, op)

    @override
    def is_present(self, op: IRDLOperation) -> bool:
        return self.operand.is_present(op)

    @override
    def is_anchorable(self) -> bool:
        return self.operand.is_anchorable()
