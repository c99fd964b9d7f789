"""Links between allocation, operand and operation: found by numbers, written as SSA values, checked."""

from __future__ import annotations

import pytest
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.superdsc.dialect import links
from spyre_mlir.dialects.superdsc.dialect.links import operand_numbers
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, LabeledDsOp
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from tests.unit.dialects.superdsc.dialect.texts import reader, written

INPUTS, OUTPUTS, INDICES = "inputLabeledDs", "outputLabeledDs", "indirectAccessIndexLabeledDs"


def operand(number: Json) -> SSAValue:
    return LabeledDsOp({"ldsIdx_": number}).result


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        (["Tensor0-idx0", "Tensor12-idx12"], [0, 12]),
        ([], []),
        (["Tensor0-idx1"], None),
        (["Tensor0"], None),
        (["Tensor01-idx01"], None),
        (["Tensor²-idx²"], None),
        ([f"Tensor{'9' * 5000}-idx{'9' * 5000}"], None),
        (["Tensor0-idx0", 3], None),
        ("Tensor0-idx0", None),
        (None, None),
    ],
)
def test_references_are_numbers(value: Json, numbers: list[int] | None) -> None:
    assert operand_numbers(value) == numbers


def test_values_have_the_numbers_of_their_ops() -> None:
    assert links.number_of(operand(3)) == 3
    assert links.number_of(AllocateOp({"ldsIdx_": 4}).result) == 4
    assert links.number_of(operand("3")) is None


def test_references_become_links_if_all_of_a_list_name_an_operand() -> None:
    zero, one = operand(0), operand(1)
    fields: JsonObject = {
        INPUTS: ["Tensor1-idx1", "Tensor0-idx0"],
        OUTPUTS: ["Tensor0-idx0", "Tensor5-idx5"],
        INDICES: [],
        "interimLabeledDs_": ["Tensor0-idx0"],
    }
    assert links.find_links(fields, {0: zero, 1: one}) == {INPUTS: [one, zero]}
    assert links.find_links({OUTPUTS: ["Tensor0"]}, {0: zero}) == {}


def test_links_stand_for_references() -> None:
    given = {INPUTS: [operand(1), operand("x")], OUTPUTS: [], links.PLACES: [operand(0)]}
    assert links.references(given) == {INPUTS: ["Tensor1-idx1", None]}


def test_links_of_an_operation_are_written() -> None:
    zero, one = operand(0), operand(1)
    given = {INPUTS: [zero, one], OUTPUTS: [one], INDICES: [zero]}
    shown: list[set[str]] = []

    def text(fields: JsonObject, held: links.Links) -> str:
        return written(lambda printer: shown.append(links.print_links(printer, Level.COMPUTE, fields, held)))

    assert text({}, given) == " (%t0, %t1) -> (%t1) indices (%t0)"
    assert text({INPUTS: [], OUTPUTS: ["Tensor9-idx9"]}, {}) == " ()"
    assert text({OUTPUTS: []}, {INDICES: [zero]}) == " -> () indices (%t0)"
    assert text({INPUTS: None}, {}) == ""
    assert shown == [{INPUTS, OUTPUTS, INDICES}, {INPUTS}, {OUTPUTS, INDICES}, set()]


def test_places_of_an_operand_are_written() -> None:
    places = [AllocateOp({"ldsIdx_": 0}).result, AllocateOp({"ldsIdx_": 0}).result]

    def text(values: list[SSAValue]) -> str:
        return written(lambda printer: links.print_links(printer, Level.LABELED_DS, {}, {links.PLACES: values}))

    assert text([*places]) == " at %a0, %a0_1"
    assert text([]) == ""


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("() -> () indices ()", {INPUTS: 0, OUTPUTS: 0, INDICES: 0}),
        ("(%x, %y) -> (%x)", {INPUTS: 2, OUTPUTS: 1}),
        ("-> (%x)", {OUTPUTS: 1}),
        ("indices (%x)", {INDICES: 1}),
        ("fields {}", {}),
    ],
)
def test_links_of_an_operation_are_read(text: str, groups: dict[str, int]) -> None:
    found, empty = links.parse_links(reader(text), Level.COMPUTE)
    assert {key: len(values) for key, values in found.items()} == groups
    assert empty == {key: [] for key, count in groups.items() if count == 0}


def test_places_are_read() -> None:
    found, empty = links.parse_links(reader("at %a, %b"), Level.LABELED_DS)
    assert ([len(values) for values in found.values()], list(found), empty) == ([2], [links.PLACES], {})
    assert links.parse_links(reader("at %a"), Level.ALLOCATE) == ({}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(%x) -> %y", "expected operands in parentheses"),
        ("(%x) indices %y", "expected operands in parentheses"),
        ("(0)", "[Oo]perand"),
        ("-> [1]", r"expected values in parentheses, such as \(%t0\) -> \(%t1\), got numbers in brackets"),
        ("[0] -> [1]", r"expected values in parentheses, such as \(%t0\) -> \(%t1\), got numbers in brackets"),
    ],
)
def test_broken_links_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        links.parse_links(reader(text), Level.COMPUTE)


def test_an_operand_is_at_allocations_of_its_number() -> None:
    links.verify_places(0, [AllocateOp({"ldsIdx_": 0}).result])
    links.verify_places(0, [])
    with pytest.raises(VerifyException, match=r"^operand 0 is at an allocation of operand 1$"):
        links.verify_places(0, [AllocateOp({"ldsIdx_": 0}).result, AllocateOp({"ldsIdx_": 1}).result])
    with pytest.raises(VerifyException, match="operand 0 is at an allocation of operand None"):
        links.verify_places(0, [AllocateOp({}).result])


def test_a_linked_operand_has_a_number() -> None:
    links.verify_references({INPUTS: [operand(0)], OUTPUTS: []})
    with pytest.raises(VerifyException, match=f"^{OUTPUTS} is linked to an operand without a number; give its"):
        links.verify_references({INPUTS: [operand(0)], OUTPUTS: [operand(1), operand("1")]})
