"""The one access to an op's fields, and that properties, links and remainder stay apart."""

from __future__ import annotations

import json

import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, LabeledDsOp, SdscComputeOp
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from tests.unit.dialects.superdsc.dialect.texts import parsed

COMPUTE: JsonObject = {
    "mine": {"a": [1]},
    "opFuncName": "add",
    "inputLabeledDs": ["Tensor3-idx3"],
    "outputLabeledDs": ["Tensor9-idx9"],
}


def compute() -> tuple[LabeledDsOp, SdscComputeOp]:
    operand = LabeledDsOp({"ldsIdx_": 3})
    return operand, SdscComputeOp(COMPUTE, {3: operand.result})


def test_fields_are_a_fresh_object_in_the_order_of_the_file() -> None:
    _, op = compute()
    assert json.dumps(op.fields) == json.dumps(COMPUTE)
    mine = op.fields["mine"]
    assert isinstance(mine, dict)
    mine["a"] = 0
    assert op["mine"] == {"a": [1]}


def test_fields_follow_properties_and_links() -> None:
    operand, op = compute()
    op.function = StringAttr("sub")
    operand.index = IntegerAttr(5, i64)
    assert (op["opFuncName"], op["inputLabeledDs"], op["outputLabeledDs"]) == (
        "sub",
        ["Tensor5-idx5"],
        ["Tensor9-idx9"],
    )
    assert list(op.fields.items()) == [
        ("mine", {"a": [1]}),
        ("opFuncName", "sub"),
        ("inputLabeledDs", ["Tensor5-idx5"]),
        ("outputLabeledDs", ["Tensor9-idx9"]),
    ]
    assert op.pick("opFuncName", "exUnit") == {"opFuncName": "sub", "exUnit": None}


def test_ops_have_no_links_or_regions_unless_they_say_so() -> None:
    op = AllocateOp({})
    assert (op.linked(), op.own_body(), op.context()) == ({}, None, FileContext())


def test_a_text_that_is_completed_has_the_same_properties_as_its_file() -> None:
    op = parsed("""superdsc.sdsc @a {
      superdsc.dsc add {
        %t3 = superdsc.labeled_ds fields {index = 3}
        superdsc.compute (%t3) fields {mine = 1, unit = "pe"}
      }
    }""")
    (found,) = (inner for inner in op.walk() if isinstance(inner, SdscComputeOp))
    assert found.unit == StringAttr("pe")
    assert found.rest == JsonAttr.of({"location": "Inner", "mine": 1})
    assert [value.owner for value in found.inputs] == [inner for inner in op.walk() if isinstance(inner, LabeledDsOp)]
    assert found["inputLabeledDs"] == ["Tensor3-idx3"]


def test_what_stands_twice_is_refused() -> None:
    op = AllocateOp({"ldsIdx_": 0})
    op.rest = JsonAttr.of({"ldsIdx_": 1})
    with pytest.raises(VerifyException, match="ldsIdx_ stands in rest and in a property or operand of its own"):
        op.verify_()
    op.rest = JsonAttr.of([1])
    with pytest.raises(VerifyException, match=r"rest must be a JSON object, got \[1\]"):
        op.verify_()
    _, linked = compute()
    linked.rest = JsonAttr.of({"inputLabeledDs": []})
    with pytest.raises(VerifyException, match="inputLabeledDs stands in rest"):
        linked.verify_()
