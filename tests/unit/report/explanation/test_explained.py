"""The text of an explanation, and its file by the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from spyre_mlir.compiled import CompiledModel
from tests.paths import ROOT

SCHEMA = ROOT / "docs" / "reference" / "explanation.schema.json"


@pytest.fixture(scope="module")
def value(rows: CompiledModel) -> dict[str, Any]:
    return json.loads(rows.explain("max").json())


def test_the_file_is_valid_by_its_schema(value: dict[str, Any], gated: CompiledModel) -> None:
    valid = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for found in (value, json.loads(gated.explain("linear").json())):
        assert [error.message for error in valid.iter_errors(found)] == []


def test_the_schema_knows_no_other_keys_and_needs_all(gated: CompiledModel, value: dict[str, Any]) -> None:
    valid = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    found = json.loads(gated.explain("sdsc_2").json())
    found["kernels"] += value["kernels"]
    product, maximum = found["kernels"]
    plan = product["others"][0]
    parts = (found, product, plan, plan["price"], product["operands"][0], product["refused"][0], maximum["tried"][0])
    parts += (product["places"][0], maximum["loops_around"][1])
    for part in parts:
        part["more keys"] = 1
        assert not valid.is_valid(found)
        del part["more keys"]
        for key, old in list(part.items()):
            del part[key]
            assert not valid.is_valid(found), key
            part[key] = old
    assert valid.is_valid(found)


def test_the_text_has_the_plans_and_the_reasons(gated: CompiledModel, rows: CompiledModel) -> None:
    lines = str(gated.explain("sdsc_2")).splitlines()
    assert lines[0].startswith("sdsc_2: batchmatmul for aten.linear at conftest.py:")
    assert lines[1] == "  loops: m = 512, n = 256, k = 1024"
    assert sum(line.startswith(("  chosen ", "  2. ", "  3. ")) and " over " in line for line in lines) >= 3
    assert "divisions: 45 looked at, 9 considered, 36 refused" in lines
    assert "loops around it: none was worth trying" in lines
    text = str(rows.explain("max"))
    assert "  runs 4 times, in loops of 4 trips" in text
    assert "  4 trips over d0 around 5 kernels: taken: " in text
    assert repr(rows.explain("max")).endswith("1 kernel>")


def test_the_text_has_the_layouts_and_the_hints_that_ask_for_them(
    columns: CompiledModel, hinted_columns: CompiledModel
) -> None:
    lines = str(columns.explain("sdsc_1")).splitlines()
    assert "  layout: quickest in trials, of 3 legal ones" in lines
    assert "layouts of the result, us of all kernels of the program by engine" in lines
    assert any(line.startswith("  chosen   lanes d0, stick 0, order [0, 1] ") for line in lines)
    asked = next(line for line in lines if line.startswith('  2. hint(layout={"stick": 1}) asks for it'))
    now, other, *_ = (one.price for one in columns.explain("sdsc_1").kernels[0].layouts)
    assert now is not None and other is not None
    assert ("us quicker by this price" in asked) == (other.total < now.total)
    assert "  inserted: relufwd at conftest.py:" in str(hinted_columns.explain("sdsc_0"))
