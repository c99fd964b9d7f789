"""Every private name of xDSL 0.74 that this compiler uses, and nothing else.

Private names move between releases, so they are met in this one module; `PRIVATE_NAMES` lists them, a
test counts them, and each has a test that fails when xDSL changes the name or its meaning.

Decision: docs/decisions/0013-private-interfaces.md
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ComplexType,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i64,
)
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet
from xdsl.parser import Parser, ParserState
from xdsl.parser.affine_parser import AffineParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from spyre_mlir.text.literals import is_hex, value_of_bits, value_of_untyped_bits
from spyre_mlir.text.short_forms import SHORT_FORMS

PRIVATE_NAMES = (
    "Parser._TensorLiteralElement",
    "Parser._parse_tensor_literal",
    "Parser._parse_tensor_literal_element",
    "Parser._parse_builtin_densearray_attr",
    "Parser._parse_optional_string_attr",
    "Parser._get_op_by_name",
    "Parser._parse_block",
    "Parser._parser_state",
    "Parser._current_token",
    "Parser._resume_from",
    "Printer._current_column",
    "MLIRLexer._unescaped_characters_regex",
    "AffineParser._get_parse_optional_bare_id",
    "AffineParser._parse_optional_token",
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


class DecimalElement(BitsElement):
    """One element of a list of decimal numbers; such lists are long, so conversion makes the fewest checks."""

    def to_type(
        self, parser: object, type: AnyFloat | IntegerType | IndexType | ComplexType
    ) -> float | int | tuple[float, float] | tuple[int, int]:
        """Convert the element to a value of the element type, once that is known."""
        if isinstance(type, IntegerType | IndexType | ComplexType):
            return Parser._TensorLiteralElement.to_type(self, cast(Any, parser), type)
        return float(cast(Any, self.value))


class LinearLexer(MLIRLexer):
    """xDSL's lexer, made linear where it takes more than linear time.

    Quantifiers of strings are possessive: what was read is never given back, as no other reading of it can succeed. An
    `x` right behind a dimension is a token: else all dimensions behind it are one name, read again for each of them.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
    bare_identifier_suffix_regex = re.compile(rf"(?<=[0-9?\]]x)|{MLIRLexer.IDENTIFIER_SUFFIX}")

    def lex(self) -> MLIRToken:
        """Read a token; the most frequent one, of which long lists consist, in one step."""
        match = _COMMON.match(self.input.content, self.pos)
        if match is None:
            return super().lex()
        self.pos = match.end()
        mark: str | None = match[1]
        kind = MLIRTokenKind.INTEGER_LIT if mark is None else KIND_BY_PUNCTUATION_SPELLING[cast(Any, mark)]
        return Token(kind, Span(match.start(match.lastindex or 0), self.pos, self.input))


class LinearAffineParser(AffineParser):
    """xDSL's parser of affine maps and sets, with names of dimensions found without a search."""

    def _get_parse_optional_bare_id(self, dims: list[str], syms: list[str]) -> Callable[[], AffineExpr | None]:
        known = {name: AffineExpr.symbol(number) for number, name in reversed(list(enumerate(syms)))}
        known |= {name: AffineExpr.dimension(number) for number, name in reversed(list(enumerate(dims)))}

        def parse_optional_bare_id() -> AffineExpr | None:
            token = self._parse_optional_token(MLIRTokenKind.BARE_IDENT)
            if token is not None and token.text not in known:
                raise ParseError(token.span, f"Identifier not in space {token.text}")
            return None if token is None else known[token.text]

        return parse_optional_bare_id


class InternalsParser(Parser):
    """The parser hooks that have no public name."""

    def __init__(self, ctx: Context, input: str | bytes, name: str = "<unknown>") -> None:
        super().__init__(ctx, "", name)  # a parser reads the first token when it is made, and would by its own lexer
        text = input.decode("utf-8") if isinstance(input, bytes) else input
        self._parser_state = ParserState(LinearLexer(Input(text, name)))
        self.whole_numbers: dict[str, IntegerAttr] = {}

    def parse_dimension_list(self) -> list[int]:
        """Parse dimensions up to one without a following `x` and dimension; those without blanks at once."""
        text, dims = self.lexer.input.content, list[int]()
        while (match := _DIMENSIONS.match(text, self.token_start)) is not None:
            dims += [DYNAMIC_INDEX if word == "?" else int(word) for word in match.group().split("x")]
            self.resume_at(match.end())
            delimiter = self.token_start
            if text[delimiter : delimiter + 1] != "x":
                break
            self.resume_at(delimiter + 1)
            if _DIMENSIONS.match(text, self.token_start) is None:
                self.resume_at(delimiter)  # the `x` before an element type is the caller's
                break
        return dims

    def parse_affine_map(self) -> AffineMap:
        """Parse an affine map."""
        return LinearAffineParser(self._parser_state).parse_affine_map()

    def parse_affine_set(self) -> AffineSet:
        """Parse an affine set."""
        return LinearAffineParser(self._parser_state).parse_affine_set()

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """Parse a number or a boolean as an attribute; equal integers of a list share one attribute."""
        match = _LISTED.match(self.lexer.input.content, self.token_start)
        if match is None:
            return super().parse_optional_builtin_int_or_float_attr()
        self.resume_at(match.end())
        text = match[0]
        if text not in self.whole_numbers:
            self.whole_numbers[text] = IntegerAttr(int(text), i64)
        return self.whole_numbers[text]

    def _parse_tensor_literal(self) -> tuple[list[Parser._TensorLiteralElement], list[int]]:
        content = self.lexer.input.content
        if (numbers := _DECIMALS.match(content, self.token_start)) is None:
            return super()._parse_tensor_literal()
        found = list(_DECIMAL.finditer(content, numbers.start(), numbers.end()))
        self.resume_at(numbers.end())
        return [self.decimal_element(number) for number in found], [len(found)]

    def decimal_element(self, number: re.Match[str]) -> DecimalElement:
        """Return the element that a match of `_DECIMAL` in this text spells."""
        value = int(number[0]) if number[1] is None else float(number[0])
        return DecimalElement(value < 0, value, Span(*number.span(), self.lexer.input))

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

    def _parse_block(self) -> Block:
        if self._current_token.kind is not MLIRTokenKind.CARET_IDENT:
            self.raise_error("expected an operation, a block such as ^bb0, or the '}' that ends the region")
        return super()._parse_block()

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
        """Parse a float of unknown type; bits are accepted where they have one meaning."""
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
    def at_end(self) -> bool:
        """The text is read: nothing is left but blanks and comments."""
        return self._current_token.kind is MLIRTokenKind.EOF

    @property
    def token_start(self) -> int:
        """Position of the next token."""
        return self._current_token.span.start


class InternalsPrinter(Printer):
    """The printer hooks that have no public name."""

    def advance_column(self, width: int) -> None:
        """Advance the printer's column by this many characters."""
        self._current_column += width


# Punctuation that begins no longer mark, and whole numbers; blanks and comments before them.
_COMMON = re.compile(r"(?:[ \t\r\n\f\v]|//[^\n]*+)*+(?:([:,()}\[\]<>=+/*?|])|([0-9]++)(?![.x]))")
# A whole number, or one with a point; the brackets of lists that hold nothing else.
_DECIMAL = re.compile(r"-?[0-9]++(?!x)(\.[0-9]*+(?:[eE][-+]?[0-9]++)?+)?+")
_DECIMALS = re.compile(rf"\[(?:[ \t\r\n]*+{_DECIMAL.pattern}[ \t\r\n]*+,)*+[ \t\r\n]*+{_DECIMAL.pattern}[ \t\r\n]*+\]")
_LISTED = re.compile(r"-?[0-9]++(?=[,\]])")
_DIMENSIONS = re.compile(r"(?:[0-9]+|\?)(?:x(?:[0-9]+|\?))*+")
_FLOAT_ARRAY = re.compile(r"<\s*(?:b?f[0-9]+|tf32)[A-Za-z0-9]*\s*:")
