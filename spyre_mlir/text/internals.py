"""Every private name of xDSL 0.74 that this compiler touches, and nothing else.

Private names move between releases, so they are met in this one module; `PRIVATE_NAMES` lists them, a
test counts them, and each has a test that fails when xDSL changes the name or its meaning.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from typing import NoReturn

from xdsl.dialects.builtin import AnyFloat, ComplexType, DenseArrayBase, IndexType, IntegerType, StringAttr
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind, StringLiteral

from spyre_mlir.text.literals import is_hex, value_of_bits, value_of_untyped_bits
from spyre_mlir.text.short_forms import SHORT_FORMS

PRIVATE_NAMES = (
    "Parser._TensorLiteralElement",
    "Parser._parse_tensor_literal_element",
    "Parser._parse_builtin_densearray_attr",
    "Parser._parse_optional_string_attr",
    "Parser._get_op_by_name",
    "Parser._parser_state",
    "Parser._current_token",
    "Parser._resume_from",
    "Printer._current_column",
)


class BitsElement(Parser._TensorLiteralElement):
    """One element of a `dense<...>` literal; hexadecimal means bits if the type is a float."""

    def to_type(
        self, parser: object, type: AnyFloat | IntegerType | IndexType | ComplexType
    ) -> float | int | tuple[float, float] | tuple[int, int]:
        """Convert the element to a value of the element type, once that is known."""
        if not isinstance(parser, InternalsParser):
            raise TypeError("a BitsElement belongs to the parser that made it")
        if isinstance(type, AnyFloat) and isinstance(self.value, int) and is_hex(self.span.text):
            return parser.checked_bits(self.value, type, self.span.start, self.span.end)
        if isinstance(type, AnyFloat) and isinstance(self.value, int) and not isinstance(self.value, bool):
            return float(self.value)
        return super().to_type(parser, type)


class InternalsParser(Parser):
    """The parser hooks that have no public name."""

    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        element = super()._parse_tensor_literal_element()
        return BitsElement(element.is_negative, element.value, element.span)

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase | None:
        start = self.pos
        match = _FLOAT_ARRAY.match(self.lexer.input.content, start)
        if match is None:
            return super()._parse_builtin_densearray_attr()
        self.parse_characters("<", " in dense array")
        element_type = self.parse_attribute()
        if not isinstance(element_type, AnyFloat):
            self.resume_at(start)
            return super()._parse_builtin_densearray_attr()
        self.parse_characters(":", " in dense array")
        values = self.parse_comma_separated_list(self.Delimiter.NONE, lambda: self.parse_float_of(element_type))
        self.parse_characters(">", " in dense array")
        return DenseArrayBase.from_list(element_type, values)

    def parse_optional_str_literal(self) -> str | None:
        """Parse a string, if present; escapes that spell UTF-8 make a string, as in MLIR, not bytes."""
        token = self._current_token
        if token.kind is not MLIRTokenKind.BYTES_LIT:
            return super().parse_optional_str_literal()
        try:
            text = StringLiteral.from_span(token.span).bytes_contents.decode("utf-8")
        except UnicodeDecodeError:
            return None
        self.parse_bytes_literal()
        return text

    def _parse_optional_string_attr(self) -> StringAttr | None:
        text = self.parse_optional_str_literal()
        return None if text is None else StringAttr(text)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        return self.unknown_operation(name) if found is None else SHORT_FORMS.get(found, found)

    def unknown_operation(self, name: str) -> NoReturn:
        """Report an operation that no loaded dialect defines."""
        self.raise_error(f"Operation {name} is not registered")

    def checked_bits(self, bits: int, type_: AnyFloat, start: int, end: int) -> float:
        """Decode the bits of a float, or raise a parse error at the literal."""
        try:
            return value_of_bits(bits, type_)
        except ValueError as error:
            self.raise_error(str(error), start, end)

    def parse_float_of(self, type_: AnyFloat) -> float:
        """Parse a float in decimal or as the bits of a known type."""
        token = self._current_token
        if not is_hex(token.text):
            return float(self.parse_number())
        bits = self.parse_integer()
        return self.checked_bits(bits, type_, token.span.start, token.span.end)

    def parse_float(self, *, allow_negative: bool = True) -> float:
        """Parse a float whose type the caller has not told; bits are read where they have one meaning."""
        token = self._current_token
        if not is_hex(token.text):
            return super().parse_float(allow_negative=allow_negative)
        value = value_of_untyped_bits(token.text)
        if value is None:
            self.raise_error("these bits mean different floats in different types; write the value in decimal")
        self.parse_integer()
        return value

    def resume_at(self, position: int) -> None:
        """Continue parsing at a position of the text."""
        self._resume_from(position)

    @property
    def token_start(self) -> int:
        """Position of the next token."""
        return self._current_token.span.start


class InternalsPrinter(Printer):
    """The printer hooks that have no public name."""

    def advance_column(self, width: int) -> None:
        """Tell the printer that this many characters of the line have been written."""
        self._current_column += width


_FLOAT_ARRAY = re.compile(r"<\s*(?:b?f[0-9]+|tf32)[A-Za-z0-9]*\s*:")
