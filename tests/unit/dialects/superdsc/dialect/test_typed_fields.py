"""Which fields are properties of their own, which stay JSON, and that together they give back the object."""

from __future__ import annotations

import json

import pytest
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.layouts import DimsAttr, LayoutClassAttr, ScalarAttr
from spyre_mlir.dialects.superdsc.dialect.typed_fields import TYPED, doubled, field, join, plain_text, split
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from tests.unit.dialects.superdsc.dialect.texts import constant, manager, starts

CLASS: JsonObject = {"layoutDimOrder_": ["mb", "out"], "stickDimOrder_": ["out"], "stickSize_": [64]}
ATTRIBUTES: JsonObject = {"dataFormat_": "SEN169_FP16", "fidelity_": "regular"}

TYPES: list[tuple[Level, str, Json, str, Attribute]] = [
    (Level.SDSC, "numWkSlicesPerDim_", {"out": 2, "mb": 1}, "splits", DimsAttr((("out", 2), ("mb", 1)))),
    (Level.DSC, "N_", {"name_": "n", "mb_": 128}, "sizes", DimsAttr((("mb", 128),))),
    (Level.DSC, "primaryDsInfo_", {"INPUT": CLASS}, "classes", ArrayAttr([LayoutClassAttr.of("INPUT", CLASS)])),
    (Level.ALLOCATE, "ldsIdx_", -3, "index", IntegerAttr(-3, i64)),
    (Level.ALLOCATE, "component_", "hbm", "component", StringAttr("hbm")),
    (Level.ALLOCATE, "isStartAddrSymbolic_", 1, "symbolic", UnitAttr()),
    (Level.ALLOCATE, "layoutDimOrder_", ["mb", ""], "order", ArrayAttr([StringAttr("mb"), StringAttr("")])),
    (
        Level.ALLOCATE,
        "startAddressCoreCorelet_",
        starts("0", "-128", str(2**63 - 1)),
        "start",
        DenseArrayBase.from_list(i64, [0, -128, 2**63 - 1]),
    ),
    (Level.LABELED_DS, "ldsIdx_", 2**63 - 1, "index", IntegerAttr(2**63 - 1, i64)),
    (Level.LABELED_DS, "dsType_", "OUTPUT", "class", StringAttr("OUTPUT")),
    (Level.LABELED_DS, "scale_", [1, -2], "scale", DenseArrayBase.from_list(i64, [1, -2])),
    (Level.LABELED_DS, "scale_", [], "scale", DenseArrayBase.from_list(i64, [])),
    (Level.LABELED_DS, "dataFormat_", "SEN169_FP16", "format", StringAttr("SEN169_FP16")),
    (Level.CONSTANT, "dataFormat_", "IEEE_FP32", "format", StringAttr("IEEE_FP32")),
    (Level.CONSTANT, "name_", "clip min", "name", StringAttr("clip min")),
    (Level.CONSTANT, "data_", constant(7), "data", ScalarAttr((7, 4))),
    (Level.CONSTANT, "data_", constant("7"), "data", ScalarAttr(("7", 4))),
    (Level.COMPUTE, "exUnit", "sfp", "unit", StringAttr("sfp")),
    (Level.COMPUTE, "opFuncName", "add", "function", StringAttr("add")),
    (Level.COMPUTE, "attributes_", ATTRIBUTES, "format", StringAttr("SEN169_FP16")),
]


@pytest.mark.parametrize(("level", "key", "value", "name", "attribute"), TYPES)
def test_deciding_fields_are_properties(level: Level, key: str, value: Json, name: str, attribute: Attribute) -> None:
    properties = split(level, {key: value})
    assert properties == {name: attribute}
    assert json.dumps(join(level, properties, {})) == json.dumps({key: value})
    assert json.dumps(field(level, properties, key)) == json.dumps(value)


def test_every_typed_field_is_tested() -> None:
    assert {(level, key) for level, table in TYPED.items() for key in table} == {row[:2] for row in TYPES}


ODD: list[tuple[Level, str, Json]] = [
    (Level.SDSC, "numWkSlicesPerDim_", {"mb": "2"}),
    (Level.SDSC, "numWkSlicesPerDim_", {"mb": True}),
    (Level.SDSC, "numWkSlicesPerDim_", None),
    (Level.DSC, "N_", {"mb_": 1}),
    (Level.DSC, "N_", {"name_": "n", "mb_": 1, "symbolicDimInfo_": {}}),
    (Level.DSC, "primaryDsInfo_", [CLASS]),
    (Level.DSC, "primaryDsInfo_", {"A": CLASS, "B": CLASS | {"more": 1}}),
    (Level.ALLOCATE, "ldsIdx_", True),
    (Level.ALLOCATE, "ldsIdx_", 1.0),
    (Level.ALLOCATE, "ldsIdx_", 2**63),
    (Level.ALLOCATE, "component_", "größe"),
    (Level.ALLOCATE, "component_", 'a"b'),
    (Level.ALLOCATE, "component_", "a\\b"),
    (Level.ALLOCATE, "component_", "a\n"),
    (Level.ALLOCATE, "component_", None),
    (Level.ALLOCATE, "isStartAddrSymbolic_", True),
    (Level.ALLOCATE, "isStartAddrSymbolic_", 0),
    (Level.ALLOCATE, "layoutDimOrder_", ["mb", 1]),
    (Level.ALLOCATE, "layoutDimOrder_", ["\ud800"]),
    (Level.ALLOCATE, "startAddressCoreCorelet_", None),
    (Level.ALLOCATE, "startAddressCoreCorelet_", {}),
    (Level.ALLOCATE, "startAddressCoreCorelet_", starts()),
    (Level.ALLOCATE, "startAddressCoreCorelet_", starts(0, 128)),
    (Level.ALLOCATE, "startAddressCoreCorelet_", starts("0", "00")),
    (Level.ALLOCATE, "startAddressCoreCorelet_", starts("0", "-0")),
    (Level.ALLOCATE, "startAddressCoreCorelet_", starts("0", str(2**63))),
    (Level.ALLOCATE, "startAddressCoreCorelet_", starts("0") | {"more": 1}),
    (Level.ALLOCATE, "startAddressCoreCorelet_", dict(reversed(starts("0").items()))),
    (Level.ALLOCATE, "startAddressCoreCorelet_", manager(["Map", "Const", "Const"], 2, {"[0, 0, 0]": "0"})),
    (Level.ALLOCATE, "startAddressCoreCorelet_", manager(["Map", "Const", "Map"], 1, {"[0, 0, 0]": "0"})),
    (Level.ALLOCATE, "startAddressCoreCorelet_", manager(["Map", "Const", "Const"], 1, {"[1, 0, 0]": "0"})),
    (Level.LABELED_DS, "scale_", [1, True]),
    (Level.LABELED_DS, "scale_", [2**63]),
    (Level.CONSTANT, "data_", constant()),
    (Level.CONSTANT, "data_", constant(-1)),
    (Level.CONSTANT, "data_", constant("x")),
    (Level.CONSTANT, "data_", constant(True)),
    (Level.CONSTANT, "data_", constant(7, 7)),
    (Level.CONSTANT, "data_", constant(7) | {"more": 1}),
    (Level.CONSTANT, "data_", constant(7) | {"dim_prop_attr": []}),
    (Level.CONSTANT, "data_", constant(7) | {"dim_prop_attr": [{"factor_": -1}]}),
    (Level.CONSTANT, "data_", "7"),
    (Level.COMPUTE, "attributes_", ATTRIBUTES | {"fidelity_": "high"}),
    (Level.COMPUTE, "attributes_", {"dataFormat_": 3, "fidelity_": "regular"}),
    (Level.COMPUTE, "attributes_", []),
    (Level.COMPUTE, "location", "Inner"),
    (Level.COMPUTE, "mine", 1),
]


@pytest.mark.parametrize(("level", "key", "value"), ODD)
def test_odd_and_other_fields_stay_json(level: Level, key: str, value: Json) -> None:
    properties = split(level, {key: value})
    assert properties == {"rest": JsonAttr.of({key: value})}
    assert json.dumps(join(level, properties, {})) == json.dumps({key: value})
    assert json.dumps(field(level, properties, key)) == json.dumps(value)


def test_the_order_of_keys_is_kept_where_it_is_not_the_usual() -> None:
    usual: JsonObject = {"exUnit": "pt", "opFuncName": "add", "location": "Inner", "mine": 1, "yours": 2}
    assert "key_order" not in split(Level.COMPUTE, usual)
    for fields in (dict(reversed(usual.items())), {"mine": 1} | usual, {"location": 1, "exUnit": "pt"}):
        properties = split(Level.COMPUTE, fields)
        assert properties["key_order"] == JsonAttr.of(list(fields))
        assert json.dumps(join(Level.COMPUTE, properties, {})) == json.dumps(fields)


@pytest.mark.parametrize("order", [JsonAttr.of(["mine"]), JsonAttr.of(["mine", "mine"]), JsonAttr.of(3), UnitAttr()])
def test_an_order_of_other_keys_means_nothing(order: Attribute) -> None:
    properties = {"key_order": order, "unit": StringAttr("pt"), "rest": JsonAttr.of({"mine": 1})}
    assert list(join(Level.COMPUTE, properties, {})) == ["exUnit", "mine"]


def test_linked_fields_are_left_to_the_links() -> None:
    fields: JsonObject = {"inputLabeledDs": ["Tensor0-idx0"], "exUnit": "pt"}
    properties = split(Level.COMPUTE, fields, ["inputLabeledDs"])
    assert properties == {"unit": StringAttr("pt"), "key_order": JsonAttr.of(["inputLabeledDs", "exUnit"])}
    linked: JsonObject = {"inputLabeledDs": ["Tensor4-idx4"]}
    assert list(join(Level.COMPUTE, properties, linked).items()) == [*linked.items(), ("exUnit", "pt")]


def test_a_field_held_twice_is_found() -> None:
    rest = JsonAttr.of({"mine": 1, "exUnit": "sfp", "inputLabeledDs": []})
    unit = {"unit": StringAttr("pt"), "rest": rest}
    assert doubled(Level.COMPUTE, unit, []) == "exUnit"
    assert doubled(Level.COMPUTE, {"rest": rest}, ["inputLabeledDs"]) == "inputLabeledDs"
    assert doubled(Level.COMPUTE, {"rest": rest}, []) is None
    assert doubled(Level.COMPUTE, {"unit": StringAttr("pt")}, []) is None
    assert join(Level.COMPUTE, unit, {})["exUnit"] == "pt"


def test_a_field_that_is_absent_is_null() -> None:
    assert field(Level.COMPUTE, {}, "exUnit") is None
    assert field(Level.COMPUTE, {"rest": JsonAttr.of([1])}, "mine") is None
    assert join(Level.COMPUTE, {"rest": JsonAttr.of([1])}, {}) == {}


def test_values_of_another_attribute_are_null() -> None:
    """Only a program that is not verified has them."""
    for level, table in TYPED.items():
        for typed in table.values():
            if typed.name not in ("symbolic", "scale", "start"):
                assert field(level, {typed.name: UnitAttr()}, typed.key) is None


def test_plain_texts() -> None:
    assert all(map(plain_text, ("", "a b", "mb_", "~")))
    assert not any(map(plain_text, (None, "ö", "\t", '"', "\\", "\x7f")))
