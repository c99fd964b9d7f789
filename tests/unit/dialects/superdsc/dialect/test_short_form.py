"""What the text leaves out of an object and how it is put back: values, types and the order of keys."""

from __future__ import annotations

import json

import pytest

from spyre_mlir.dialects.superdsc.dialect.short_form import PARTIAL, complete, parse_fields, print_fields
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from tests.unit.dialects.superdsc.dialect.texts import reader, written

# An operation's only implied field is its location, Inner; keys in the front end's order.
COMPUTE: JsonObject = {
    "exUnit": "sfp",
    "opFuncName": "add",
    "attributes_": {"dataFormat_": "SEN169_FP16", "fidelity_": "regular"},
    "location": "Inner",
}
HEAD = " sfp add SEN169_FP16"


def without(key: str) -> JsonObject:
    return {name: value for name, value in COMPUTE.items() if name != key}


FORMS: list[tuple[JsonObject, str]] = [
    (COMPUTE, HEAD),
    (COMPUTE | {"location": "Outer"}, f'{HEAD} fields {{location = "Outer"}}'),
    (without("location"), f"{HEAD} without [location]"),
    (COMPUTE | {"mine": 1, "b": {}}, f"{HEAD} fields {{mine = 1, b = {{}}}}"),
    (COMPUTE | {"indirectAccessIndexLabeledDs": []}, f"{HEAD} indices ()"),
    (COMPUTE | {"inputLabeledDs": [], "outputLabeledDs": []}, f"{HEAD} () -> ()"),
    (COMPUTE | {"inputLabeledDs": ["Tensor0-idx0"]}, f'{HEAD} fields {{inputs = ["Tensor0-idx0"]}}'),
    # Unknown keys that read as a known one's name in text, or as such a key.
    (COMPUTE | {"unit": 1}, f'{HEAD} fields {{"=unit" = 1}}'),
    (COMPUTE | {"=unit": 1}, f'{HEAD} fields {{"==unit" = 1}}'),
    (
        {key: COMPUTE[key] for key in ("exUnit", "attributes_", "opFuncName", "location")},
        f"{HEAD} order [unit, attributes, function, location]",
    ),
    (
        {"mine": 1} | without("location"),
        f"{HEAD} fields {{mine = 1}} without [location] order [mine, unit, function, attributes]",
    ),
    ({"location": "Inner"}, ""),
    ({}, " without [location]"),
]


@pytest.mark.parametrize(("fields", "text"), FORMS)
def test_objects_are_written_short_and_put_back(fields: JsonObject, text: str) -> None:
    assert written(lambda printer: print_fields(printer, Level.COMPUTE, fields, FileContext())) == text
    spelled = parse_fields(reader(text), Level.COMPUTE)
    again = complete(Level.COMPUTE, spelled.fields, spelled.partial, FileContext())
    assert json.dumps(again) == json.dumps(fields)


def test_an_equal_value_of_another_type_is_written() -> None:
    """The front end counts one corelet; a file may say true."""
    context = FileContext(splits={"mb": 1}, sizes={"mb": 2})
    text = written(lambda printer: print_fields(printer, Level.DSC, {"numCoreletsUsed_": True}, context))
    assert text.startswith(" fields {corelets_used = true} without [")


def test_what_the_text_says_is_kept_apart_until_the_context_is_known() -> None:
    text = "0 in hbm [mb] start 0 + 128 * mb fields {prev = 3} without [name, coordinates] order [prev, mine]"
    spelled = parse_fields(reader(text), Level.ALLOCATE)
    assert spelled.fields == {"ldsIdx_": 0, "component_": "hbm", "layoutDimOrder_": ["mb"], "prev_": 3}
    assert spelled.links == {}
    assert spelled.partial == {
        "short": {"startAddressCoreCorelet_": {"base": 0, "steps": {"mb": 128}}},
        "without": ["name_", "coordinates_"],
        "order": ["prev_", "mine"],
    }
    assert PARTIAL == "partial"


def test_short_values_become_long_ones() -> None:
    short: JsonObject = {"short": {"startAddressCoreCorelet_": {"base": 0, "steps": {"mb": 128}}}}
    found = complete(Level.ALLOCATE, {"mine": 1}, short, FileContext(splits={"mb": 2}))
    assert list(found) == ["startAddressCoreCorelet_", "mine"]
    start = found["startAddressCoreCorelet_"]
    assert isinstance(start, dict)
    assert start["data_"] == {"[0, 0, 0]": "0", "[1, 0, 0]": "128"}


def test_an_order_that_does_not_fit_is_the_front_ends() -> None:
    fields: JsonObject = {"opFuncName": "add", "exUnit": "sfp"}
    assert list(complete(Level.COMPUTE, fields, {"order": ["opFuncName"]}, FileContext())) == [
        "exUnit",
        "opFuncName",
        "location",
    ]
    order = ["location", "opFuncName", "exUnit"]
    assert list(complete(Level.COMPUTE, fields, {"order": [*order]}, FileContext())) == order
