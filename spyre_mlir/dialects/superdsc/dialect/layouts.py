"""Typed values of the ops' properties: sizes by dim, layout classes, scalars; and the types of the links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from spyre_mlir.dialects.superdsc.dialect.attributes import (
    parse_optional_text,
    parse_word,
    parse_word_list,
    parse_word_map,
    print_text,
    print_word,
    print_word_list,
    print_word_map,
)
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.json_value import (
    Json,
    JsonObject,
    as_int_map,
    as_ints,
    as_object,
    as_texts,
    natural,
)


@irdl_attr_definition
class AllocationType(ParametrizedAttribute, TypeAttribute):
    """The place of an operand: the result of a `superdsc.allocate`."""

    name = "superdsc.allocation"


@irdl_attr_definition
class LabeledDsType(ParametrizedAttribute, TypeAttribute):
    """An operand: the result of a `superdsc.labeled_ds`, which a `superdsc.compute` reads and writes."""

    name = "superdsc.labeled_ds"


@irdl_attr_definition
class DimsAttr(Data[tuple[tuple[str, int], ...]]):
    """A number per dim, in order: `#superdsc.dims<{mb = 128, out = 256}>`. MLIR's dictionaries would sort the dims."""

    name = "superdsc.dims"

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> DimsAttr:
        """Return the attribute of a mapping."""
        return cls(tuple(numbers.items()))

    @property
    def numbers(self) -> dict[str, int]:
        """Return the number of each dim, in order."""
        return dict(self.data)

    @classmethod
    @override
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, int], ...]:
        with parser.in_angle_brackets():
            return tuple(parse_numbers(parser).items())

    @override
    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_numbers(printer, self.numbers)


@irdl_attr_definition
class LayoutClassAttr(ParametrizedAttribute):
    """A layout class, the order that scales follow and its stick: `#superdsc.class<OUTPUT = [mb] stick {mb = 64}>`."""

    name = "superdsc.class"

    label: StringAttr
    order: ArrayAttr[StringAttr]
    sticks: DimsAttr

    @classmethod
    def of(cls, label: str, entry: Json) -> LayoutClassAttr:
        """Return the attribute of a plain class."""
        fields = as_object(entry) or {}
        order = ArrayAttr([StringAttr(dim) for dim in as_texts(fields.get(keys.ORDER)) or []])
        return cls(StringAttr(label), order, DimsAttr.of(_sticks(fields)))

    @property
    def entry(self) -> JsonObject:
        """Return the class as the file has it."""
        sticks = self.sticks.numbers
        return {
            keys.ORDER: [dim.data for dim in self.order],
            keys.STICK_DIMS: list(sticks),
            keys.STICK_SIZES: list(sticks.values()),
        }

    @classmethod
    @override
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            label = parse_word(parser)
            parser.parse_punctuation("=")
            return cls.of(label, parse_class(parser)).parameters

    @override
    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_word(printer, self.label.data)
            printer.print_string(" = ")
            print_class(printer, self.entry)


@irdl_attr_definition
class ScalarAttr(Data[tuple[int | str, int]]):
    """The bits of a constant, one word for all cores: `#superdsc.scalar<48128 on 32>`; quoted where the file does."""

    name = "superdsc.scalar"

    @property
    def word(self) -> int | str:
        """Return the word as the file has it: a number or its decimal text."""
        return self.data[0]

    @property
    def bits(self) -> int:
        """Return the bit pattern."""
        return int(self.data[0])

    @property
    def cores(self) -> int:
        """Return the number of cores that get the word."""
        return self.data[1]

    @classmethod
    @override
    def parse_parameter(cls, parser: AttrParser) -> tuple[int | str, int]:
        with parser.in_angle_brackets():
            text = parse_optional_text(parser)
            if text is not None and natural(text) is None:
                parser.raise_error("expected a decimal number in quotes")
            word = parser.parse_integer(False, False) if text is None else text
            parser.parse_keyword("on")
            return word, parser.parse_integer(False, False)

    @override
    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            if isinstance(self.word, str):
                print_text(printer, self.word)
            else:
                printer.print_string(str(self.word))
            printer.print_string(f" on {self.cores}")


def print_numbers(printer: Printer, numbers: Mapping[str, int]) -> None:
    """Print `{mb = 128, out = 256}`."""
    print_word_map(printer, dict(numbers), lambda value: printer.print_string(str(value)))


def parse_numbers(parser: AttrParser) -> dict[str, int]:
    """Parse `{mb = 128, out = 256}`."""
    return as_int_map(parse_word_map(parser, lambda: parser.parse_integer(False))) or {}


def plain_class(value: Json) -> bool:
    """Return whether an entry of `primaryDsInfo_` has just an order and sticks, in the usual order of keys."""
    entry = as_object(value) or {}
    if list(entry) != [keys.ORDER, keys.STICK_DIMS, keys.STICK_SIZES]:
        return False
    sticks, sizes = as_texts(entry[keys.STICK_DIMS]), as_ints(entry[keys.STICK_SIZES])
    if as_texts(entry[keys.ORDER]) is None or sticks is None or sizes is None:
        return False
    return len(sticks) == len(sizes) == len(set(sticks))


def _sticks(entry: JsonObject) -> dict[str, int]:
    dims, sizes = as_texts(entry.get(keys.STICK_DIMS)) or [], as_ints(entry.get(keys.STICK_SIZES)) or []
    return dict(zip(dims, sizes, strict=True))


def print_class(printer: Printer, value: Json) -> None:
    """Print `[mb, out] stick {out = 64}`."""
    entry = as_object(value) or {}
    print_word_list(printer, as_texts(entry.get(keys.ORDER)) or [])
    printer.print_string(" stick ")
    print_numbers(printer, _sticks(entry))


def parse_class(parser: AttrParser) -> JsonObject:
    """Parse `[mb, out] stick {out = 64}` as an entry of `primaryDsInfo_`."""
    order = parse_word_list(parser)
    parser.parse_keyword("stick")
    sticks = parse_numbers(parser)
    return {keys.ORDER: order, keys.STICK_DIMS: list(sticks), keys.STICK_SIZES: list(sticks.values())}
