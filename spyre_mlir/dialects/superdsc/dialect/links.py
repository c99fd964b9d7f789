"""Links from an operation to its operands, and from an operand to the places that hold it, as SSA values.

A list of references that names no operand of the DSC, or is written otherwise, stays in the rest of its object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.superdsc.dialect.layouts import AllocationType, LabeledDsType
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject, as_list, as_texts, natural, same

Links = Mapping[str, Sequence[SSAValue]]

PLACES = "at"  # the allocations of an operand; no key of the file, they are linked by their numbers
GROUPS: dict[Level, tuple[str, ...]] = {
    Level.LABELED_DS: (PLACES,),
    Level.COMPUTE: (keys.INPUTS, keys.OUTPUTS, keys.INDICES),
}
"""Groups of SSA operands of each op that has any, in order."""

_WORDS = {keys.INPUTS: "", keys.OUTPUTS: "-> ", keys.INDICES: "indices "}


def operand_numbers(value: Json) -> list[int] | None:
    """Return the operand numbers of a list of `Tensor0-idx0` references, or None where one is written otherwise."""
    numbers: list[int] = []
    for reference in as_texts(value) or []:
        number = natural(reference.rpartition("-idx")[2])
        if number is None or derived_values.operand_reference(number) != reference:
            return None
        numbers.append(number)
    return None if as_list(value) is None or len(numbers) != len(as_list(value) or []) else numbers


def number_of(value: SSAValue) -> int | None:
    """Return the operand number of an allocation or an operand; None where its op has no regular one."""
    index = value.owner.properties.get("index") if isinstance(value.owner, Operation) else None
    return index.value.data if isinstance(index, IntegerAttr) else None


def find_links(fields: JsonObject, operands: Mapping[int, SSAValue]) -> dict[str, list[SSAValue]]:
    """Return the operands that an operation's references name, for each list whose references all name one."""
    links: dict[str, list[SSAValue]] = {}
    for key in GROUPS[Level.COMPUTE]:
        numbers = operand_numbers(fields.get(key))
        if numbers and all(number in operands for number in numbers):
            links[key] = [operands[number] for number in numbers]
    return links


def references(links: Links) -> JsonObject:
    """Return the fields that links stand for; null is a reference to an operand without a number."""
    return {key: [_reference(value) for value in values] for key, values in links.items() if key != PLACES and values}


def _reference(value: SSAValue) -> Json:
    number = number_of(value)
    return None if number is None else derived_values.operand_reference(number)


def print_links(printer: Printer, level: Level, fields: JsonObject, links: Links) -> set[str]:
    """Print the links of an op; return the fields that they show. An empty list is shown like a link."""
    shown: set[str] = set()
    if links.get(PLACES):
        printer.print_string(" at ")
        printer.print_list(links[PLACES], printer.print_ssa_value)
    for key in GROUPS[level] if level is Level.COMPUTE else ():
        values = links.get(key, ())
        if values or same(fields.get(key), []):
            printer.print_string(f" {_WORDS[key]}")
            printer.print_operands(values)
            shown.add(key)
    return shown


def parse_links(parser: Parser, level: Level) -> tuple[dict[str, list[SSAValue]], JsonObject]:
    """Parse the links of an op, and the fields whose lists are empty."""
    links: dict[str, list[SSAValue]] = {}
    if level is Level.LABELED_DS and parser.parse_optional_keyword(PLACES):
        links[PLACES] = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: parser.parse_operand(AllocationType())
        )
    if level is Level.COMPUTE:
        inputs = _parse_operands(parser)
        outputs = _expect_operands(parser) if parser.parse_optional_punctuation("->") else None
        indices = _expect_operands(parser) if parser.parse_optional_keyword("indices") else None
        found = {keys.INPUTS: inputs, keys.OUTPUTS: outputs, keys.INDICES: indices}
        links |= {key: values for key, values in found.items() if values is not None}
    empty: JsonObject = {key: [] for key, values in links.items() if not values}
    return links, empty


def _parse_operands(parser: Parser) -> list[SSAValue] | None:
    if parser.parse_optional_punctuation("["):
        parser.raise_error("expected values in parentheses, such as (%t0) -> (%t1), got numbers in brackets")
    return parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_operand(LabeledDsType())
    )


def _expect_operands(parser: Parser) -> list[SSAValue]:
    return parser.expect(lambda: _parse_operands(parser), "expected operands in parentheses")


def verify_places(index: int | None, places: Sequence[SSAValue]) -> None:
    """An operand is at allocations of its own number."""
    for place in places:
        if number_of(place) != index:
            raise VerifyException(f"operand {index} is at an allocation of operand {number_of(place)}")


def verify_references(links: Links) -> None:
    """An operation is linked to operands that have numbers."""
    for key, values in links.items():
        if any(number_of(value) is None for value in values):
            raise VerifyException(f"{key} is linked to an operand without a number; give its labeled_ds an index")
