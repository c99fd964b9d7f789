"""Symbolic sizes in the text of the aten level.

```mlir
func.func @main(%x: tensor<1x?x64xf32, #aten.extents<"s0">>) attributes {aten.symbols = {s0 = array<i64: 2, 512>}}
aten.guard "s0 % 2 == 0"
%1 = aten.view(%0) {size = [1 : i64, #aten.size<"s0 // 2">, 128 : i64]} : …
```
The extents of a type stand in the order of its question marks; a symbol has a least value, and a largest one if it is
limited.

Decision: docs/decisions/0119-sizes-are-in-the-types.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, param_def, prop_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.directives import Quoted
from spyre_mlir.dialects.size_expressions import SYMBOL, evaluate, symbols_in

# Note on a function: the symbols of its types and arguments, with their ranges.
SYMBOLS = "aten.symbols"


@irdl_attr_definition
class SizeAttr(ParametrizedAttribute):
    """A number that depends on symbols, in the place of an argument: ``#aten.size<"2 * s0">``."""

    name = "aten.size"

    text: StringAttr = param_def(converter=StringAttr.get)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Reads ``<"expression">``."""
        with parser.in_angle_brackets():
            return (StringAttr(parser.parse_str_literal()),)

    def print_parameters(self, printer: Printer) -> None:
        """Writes ``<"expression">``."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.text.data)

    def verify(self) -> None:
        """Checks the expression."""
        _check(self.text.data)


@irdl_attr_definition
class ExtentsAttr(ParametrizedAttribute):
    """The symbolic extents of a tensor type, one for every question mark: ``#aten.extents<"s0", "2 * s0">``."""

    name = "aten.extents"

    texts: ArrayAttr[StringAttr]

    @classmethod
    def of(cls, texts: Iterable[str]) -> ExtentsAttr:
        """Return the extents of these texts."""
        return cls(ArrayAttr([StringAttr(text) for text in texts]))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Reads ``<"expression", …>``."""
        texts = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_str_literal)
        return (ArrayAttr([StringAttr(text) for text in texts]),)

    def print_parameters(self, printer: Printer) -> None:
        """Writes ``<"expression", …>``."""
        with printer.in_angle_brackets():
            printer.print_list(self.texts, lambda text: printer.print_string_literal(text.data))

    def verify(self) -> None:
        """Checks the expressions."""
        for text in self.texts:
            _check(text.data)


def _check(text: str) -> None:
    try:
        symbols_in(text)
    except ValueError as error:
        raise VerifyException(f'{error}; try a size such as "s0", "2 * s0 + 1" or "s0 // 2"') from error


@irdl_op_definition
class GuardOp(IRDLOperation):
    """A condition on symbols that the program takes for granted: ``aten.guard "s0 % 2 == 0"``."""

    name = "aten.guard"

    condition = prop_def(StringAttr)

    assembly_format = "custom<Quoted>($condition) attr-dict"
    custom_directives = (Quoted,)

    def __init__(self, condition: str) -> None:
        """Makes the guard of a condition."""
        super().__init__(properties={"condition": StringAttr(condition)})

    def verify_(self) -> None:
        """Checks the condition."""
        _check(self.condition.data)


@dataclass(frozen=True)
class SymbolRange:
    """The values that a symbol may have.

    Attributes:
        least: the smallest.
        most: the largest; None if there is no limit.
    """

    least: int
    most: int | None = None

    def __contains__(self, value: int) -> bool:
        """Return whether the symbol may have this value."""
        return self.least <= value and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        """As an error says it."""
        return f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"


def symbols_attribute(ranges: Mapping[str, SymbolRange]) -> DictionaryAttr:
    """Return the note on a function that declares its symbols."""
    return DictionaryAttr(
        {
            name: DenseArrayBase.from_list(i64, [r.least] if r.most is None else [r.least, r.most])
            for name, r in ranges.items()
        }
    )


def declared_symbols(note: Attribute | None) -> dict[str, SymbolRange]:
    """Return the symbols that a note on a function declares; none if there is no note.

    Raises:
        VerifyException: the note is something else.
    """
    if note is None:
        return {}
    if not isinstance(note, DictionaryAttr):
        raise VerifyException(f"{SYMBOLS} is {note}, expected {{s0 = array<i64: least, most>}}")
    found: dict[str, SymbolRange] = {}
    for name, entry in note.data.items():
        numbers = (
            tuple(cast("DenseArrayBase[IntegerType]", entry).iter_values()) if isinstance(entry, DenseArrayBase) else ()
        )
        if SYMBOL.fullmatch(name) is None or len(numbers) not in (1, 2):
            raise VerifyException(f"symbol {name} is {entry}, expected {{s0 = array<i64: least, most>}}")
        found[name] = SymbolRange(*(int(n) for n in numbers))
    return found


def is_symbolic(type_: Attribute) -> bool:
    """Return whether an extent of a type is not a number."""
    return isinstance(type_, TensorType) and DYNAMIC_INDEX in type_.get_shape()


def has_symbols(attribute: Attribute) -> bool:
    """Return whether a size in an argument is not a number."""
    match attribute:
        case SizeAttr():
            return True
        case ArrayAttr():
            return any(has_symbols(item) for item in attribute)
        case DictionaryAttr():
            return any(has_symbols(item) for item in attribute.data.values())
        case _:
            return False


def symbolic_extents(type_: TensorType[Attribute]) -> tuple[int | str, ...]:
    """Return the extents of a type: numbers, and expressions where it has symbols.

    Raises:
        VerifyException: it has not one expression for every question mark.
    """
    texts = [text.data for text in type_.encoding.texts] if isinstance(type_.encoding, ExtentsAttr) else []
    shape = type_.get_shape()
    if len(texts) != shape.count(DYNAMIC_INDEX):
        raise VerifyException(
            f"{type_} has {shape.count(DYNAMIC_INDEX)} open extents and {len(texts)} expressions; "
            'try tensor<?x64xf32, #aten.extents<"s0">>'
        )
    queue = iter(texts)
    return tuple(next(queue) if extent == DYNAMIC_INDEX else extent for extent in shape)


def extents_at(type_: TensorType[Attribute], sizes: Mapping[str, int]) -> list[int]:
    """Return the extents of a type once its symbols have values."""
    return [e if isinstance(e, int) else int(evaluate(e, sizes)) for e in symbolic_extents(type_)]


def number_at(value: object, sizes: Mapping[str, int]) -> object:
    """Return the number that a symbolic size is for these values of symbols; anything else stays as it is."""
    return evaluate(value.text.data, sizes) if isinstance(value, SizeAttr) else value


def type_with_extents(element: Attribute, extents: Sequence[int | str]) -> TensorType[Attribute]:
    """Return a tensor type whose extents are numbers or expressions."""
    texts = [extent for extent in extents if isinstance(extent, str)]
    shape = [DYNAMIC_INDEX if isinstance(extent, str) else extent for extent in extents]
    return TensorType(element, shape, ExtentsAttr.of(texts)) if texts else TensorType(element, shape)


__all__ = [
    "SYMBOLS",
    "ExtentsAttr",
    "GuardOp",
    "SizeAttr",
    "SymbolRange",
    "declared_symbols",
    "extents_at",
    "has_symbols",
    "is_symbolic",
    "number_at",
    "symbolic_extents",
    "symbols_attribute",
    "type_with_extents",
]
