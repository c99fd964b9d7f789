"""Arguments of an op as attributes, and back: each kind of value, operands by name, the reverse."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f32,
    f64,
    i1,
    i8,
    i64,
)
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.aten_arguments import (
    ORIGIN,
    NoneAttr,
    OperandsAttr,
    as_arguments,
    bound_arguments,
    said_arguments,
    spell_arguments,
    to_attribute,
    to_value,
    verify_arguments,
)
from spyre_mlir.universe import make_context


def parsed(text: str) -> Attribute:
    return Parser(make_context(), text).parse_attribute()


@pytest.mark.parametrize(
    ("attribute", "text"),
    [(NoneAttr(), "#aten.none"), (OperandsAttr(0), "#aten.operands<0>"), (OperandsAttr(3), "#aten.operands<3>")],
)
def test_text_of_the_attributes(attribute: Attribute, text: str) -> None:
    assert str(attribute) == text
    assert parsed(text) == attribute


@pytest.mark.parametrize("count", ["-1", "true", "x"])
def test_a_count_of_operands_is_a_number_from_zero(count: str) -> None:
    with pytest.raises(ParseError):
        parsed(f"#aten.operands<{count}>")


SPELLINGS: list[tuple[object, Attribute]] = [
    (None, NoneAttr()),
    (True, IntegerAttr(1, i1)),
    (False, IntegerAttr(0, i1)),
    (1, IntegerAttr(1, i64)),
    (-7, IntegerAttr(-7, i64)),
    (0.5, FloatAttr(0.5, f64)),
    ("tanh", StringAttr("tanh")),
    ((), DenseArrayBase.from_list(i64, [])),
    ((2, -1), DenseArrayBase.from_list(i64, [2, -1])),
    ((1.5, None), ArrayAttr([FloatAttr(1.5, f64), NoneAttr()])),
    ((True, 2), ArrayAttr([IntegerAttr(1, i1), IntegerAttr(2, i64)])),
]


@pytest.mark.parametrize(("value", "attribute"), SPELLINGS)
def test_spelling_of_values(value: object, attribute: Attribute) -> None:
    assert to_attribute(value) == attribute
    back = to_value(attribute)
    assert back == value
    assert type(back) is type(value)


def test_a_list_is_spelled_as_a_tuple_is() -> None:
    assert to_attribute([2, 3]) == to_attribute((2, 3))
    assert to_attribute([0.5, [1]]) == to_attribute((0.5, (1,)))


def test_attributes_spell_themselves() -> None:
    assert to_attribute(f32) is f32
    assert to_value(f32) == "f32"
    assert to_value(UnitAttr()) == UnitAttr()
    narrow = to_value(IntegerAttr(1, i8))
    assert narrow == 1 and not isinstance(narrow, bool)


def test_other_values_are_refused() -> None:
    with pytest.raises(TypeError, match=r"no attribute spells \{1\} of type set"):
        to_attribute({1})


def test_operands_are_bound_in_the_order_of_the_attributes() -> None:
    attributes: dict[str, Attribute] = {
        "self": OperandsAttr(1),
        "tensors": OperandsAttr(2),
        "indices": ArrayAttr([NoneAttr(), OperandsAttr(1)]),
        "none_at_all": OperandsAttr(0),
        "k": IntegerAttr(2, i64),
    }
    assert bound_arguments(attributes, ["a", "b", "c", "d"]) == {
        "self": "a",
        "tensors": ["b", "c"],
        "indices": [None, "d"],
        "none_at_all": [],
        "k": 2,
    }


def test_a_mark_of_lowering_is_discardable() -> None:
    assert ORIGIN == "spyre.origin"


def test_no_arguments_are_no_property() -> None:
    assert as_arguments({}) is None and said_arguments(None) == {}
    given = {"k": IntegerAttr(2, i64), "dim": IntegerAttr(0, i64)}
    property_ = as_arguments(given)
    assert property_ == DictionaryAttr(given) and list(said_arguments(property_)) == ["k", "dim"]


@pytest.mark.parametrize(
    ("attributes", "given", "message"),
    [
        ({"a.note": UnitAttr()}, {"k": UnitAttr()}, None),
        ({"k": UnitAttr()}, {}, "'k' of test.op is a discardable attribute, expected an argument"),
        (
            {"spyre.wide": UnitAttr()},
            {},
            "'spyre.wide' of test.op is a discardable attribute, expected the property 'wide'",
        ),
        ({}, {"spyre.wide": UnitAttr()}, "'spyre.wide' is no argument of test.op; try wide behind the arguments"),
    ],
)
def test_arguments_are_properties(
    attributes: dict[str, Attribute], given: dict[str, Attribute], message: str | None
) -> None:
    op = TestOp(attributes=attributes)
    if message is None:
        verify_arguments(op, given)
        return
    with pytest.raises(VerifyException, match=message):
        verify_arguments(op, given)


@dataclass(frozen=True)
class Tensor:
    name: str


A, B, C = map(Tensor, "abc")


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (A, OperandsAttr(1)),
        ([A, B], OperandsAttr(2)),
        ([A], ArrayAttr([OperandsAttr(1)])),  # a count of 1 would mean the tensor alone
        ([None, A], ArrayAttr([NoneAttr(), OperandsAttr(1)])),
        ([], OperandsAttr(0)),
        (3, IntegerAttr(3, i64)),
        ([1, 2], ArrayAttr([IntegerAttr(1, i64), IntegerAttr(2, i64)])),
    ],
)
def test_arguments_spelled_and_bound_again(value: object, attribute: Attribute) -> None:
    operands, attributes = spell_arguments({"first": C, "x": value, "absent": None}, Tensor)
    inside = value if isinstance(value, list) else [value]
    assert operands == [C, *(v for v in inside if isinstance(v, Tensor))]
    assert attributes == {"first": OperandsAttr(1), "x": attribute}
    assert bound_arguments(attributes, operands) == {"first": C, "x": value}
