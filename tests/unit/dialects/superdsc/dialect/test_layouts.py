"""The dialect's own attributes and types: their texts, and what they give back of a file."""

from __future__ import annotations

import json

import pytest
from xdsl.ir import Attribute
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.superdsc.dialect.layouts import (
    AllocationType,
    DimsAttr,
    LabeledDsType,
    LayoutClassAttr,
    ScalarAttr,
    parse_class,
    parse_numbers,
    plain_class,
    print_class,
    print_numbers,
)
from spyre_mlir.dialects.superdsc.model.json_value import Json
from tests.unit.dialects.superdsc.dialect.texts import reader, written

TWO_STICKS: dict[str, Json] = {
    "layoutDimOrder_": ["mb", "a b"],
    "stickDimOrder_": ["in", "out"],
    "stickSize_": [2, 64],
}


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (AllocationType(), "!superdsc.allocation"),
        (LabeledDsType(), "!superdsc.labeled_ds"),
        (DimsAttr.of({"out": 256, "mb": 128}), "#superdsc.dims<{out = 256, mb = 128}>"),
        (DimsAttr.of({}), "#superdsc.dims<{}>"),
        (DimsAttr.of({"größe": 10**30}), f'#superdsc.dims<{{"gr\\C3\\B6\\C3\\9Fe" = {10**30}}}>'),
        (
            LayoutClassAttr.of("OUTPUT", TWO_STICKS),
            '#superdsc.class<OUTPUT = [mb, "a b"] stick {in = 2, out = 64}>',
        ),
        (ScalarAttr((48128, 32)), "#superdsc.scalar<48128 on 32>"),
        (ScalarAttr(("007", 1)), '#superdsc.scalar<"007" on 1>'),
    ],
)
def test_attributes_are_written_and_read(attribute: Attribute, text: str) -> None:
    assert written(lambda printer: printer.print_attribute(attribute)) == text
    assert reader(text).parse_attribute() == attribute


@pytest.mark.parametrize(
    "text",
    [
        "#superdsc.dims<{mb = true}>",
        "#superdsc.dims<{mb = 1, mb = 2}>",
        "#superdsc.class<OUTPUT [mb] stick {mb = 2}>",
        '#superdsc.scalar<"x" on 32>',
        "#superdsc.scalar<-1 on 32>",
        "#superdsc.scalar<1 on -1>",
    ],
)
def test_broken_attributes_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        reader(text).parse_attribute()


def test_dims_keep_their_order() -> None:
    dims = DimsAttr.of({"out": 256, "mb": 128})
    assert list(dims.numbers.items()) == [("out", 256), ("mb", 128)]
    assert dims != DimsAttr.of({"mb": 128, "out": 256})


def test_a_class_is_an_entry_of_the_file() -> None:
    attribute = LayoutClassAttr.of("OUTPUT", TWO_STICKS)
    assert (attribute.label.data, attribute.sticks.numbers) == ("OUTPUT", {"in": 2, "out": 64})
    assert json.dumps(attribute.entry) == json.dumps(TWO_STICKS)


def test_a_scalar_is_a_word_and_its_bits() -> None:
    assert (ScalarAttr((7, 32)).word, ScalarAttr((7, 32)).bits, ScalarAttr((7, 32)).cores) == (7, 7, 32)
    assert (ScalarAttr(("007", 2)).word, ScalarAttr(("007", 2)).bits, ScalarAttr(("007", 2)).cores) == ("007", 7, 2)


def test_classes_with_anything_odd_are_not_plain() -> None:
    assert plain_class(TWO_STICKS)
    odd: list[Json] = [
        None,
        [],
        {},
        TWO_STICKS | {"more": 1},
        dict(reversed(TWO_STICKS.items())),
        TWO_STICKS | {"layoutDimOrder_": [1]},
        TWO_STICKS | {"stickDimOrder_": ["in", 1]},
        TWO_STICKS | {"stickDimOrder_": ["in", "in"]},
        TWO_STICKS | {"stickDimOrder_": ["in"]},
        TWO_STICKS | {"stickSize_": ["2", 64]},
    ]
    assert not any(map(plain_class, odd))


def test_parts_are_written_and_read() -> None:
    assert written(lambda printer: print_numbers(printer, {"mb": 2, "a b": -3})) == '{mb = 2, "a b" = -3}'
    assert parse_numbers(reader('{mb = 2, "a b" = -3}')) == {"mb": 2, "a b": -3}
    text = '[mb, "a b"] stick {in = 2, out = 64}'
    assert written(lambda printer: print_class(printer, TWO_STICKS)) == text
    assert parse_class(reader(text)) == TWO_STICKS
