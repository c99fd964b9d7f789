"""What the verifiers of the ops refuse, with the last value that is right and the first that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.superdsc.dialect import verify
from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.ops import SdscComputeOp
from spyre_mlir.dialects.superdsc.model.fields import JsonKind, Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import Json
from spyre_mlir.hw.spec import SPYRE


def refused(check: Callable[[], object]) -> str:
    with pytest.raises(VerifyException) as caught:
        check()
    return str(caught.value)


# Of an integer, a truth, 0, 1, a float, a string, "{}", an object, a list and null: which each kind is.
SAMPLES: list[Json] = [7, True, 0, 1, 1.5, "x", "{}", {}, [], None]


@pytest.mark.parametrize(
    ("kind", "fits"),
    [
        (JsonKind.INT, [7, 0, 1]),
        (JsonKind.NUMBER, [7, 0, 1, 1.5]),
        (JsonKind.FLAG, [True, 0, 1]),
        (JsonKind.TEXT, ["x", "{}"]),
        (JsonKind.OBJECT, [{}]),
        (JsonKind.LIST, [[]]),
        (JsonKind.CONSTANTS, ["{}", {}]),
        (JsonKind.ANY, SAMPLES),
    ],
)
def test_kinds_of_values(kind: JsonKind, fits: list[Json]) -> None:
    assert [JsonAttr.of(value) for value in SAMPLES if verify.is_kind(kind, value)] == list(map(JsonAttr.of, fits))
    assert not verify.is_kind(JsonKind.FLAG, 1.0)


def test_the_first_field_of_another_kind_is_named() -> None:
    fields: dict[str, Json] = {"mine": 1, "ldsIdx_": 0, "dsName_": 3, "scale_": {}}
    assert verify.wrong_kind(Level.LABELED_DS, fields) == ("dsName_", "a string")
    assert verify.wrong_kind(Level.LABELED_DS, {"mine": 1, "ldsIdx_": 0}) is None
    verify.verify_kinds(Level.LABELED_DS, {"ldsIdx_": 0})
    message = refused(lambda: verify.verify_kinds(Level.LABELED_DS, {"dsName_": [3] * 40}))
    assert message == "dsName_ must be a string, got " + ("[" + "3," * 40)[:60]


def test_the_rest_is_an_object_of_other_fields() -> None:
    verify.verify_rest(None, None)
    verify.verify_rest(JsonAttr.of({}), None)
    message = refused(lambda: verify.verify_rest(JsonAttr.of("x" * 60), None))
    assert message == 'rest must be a JSON object, got "' + "x" * 59
    message = refused(lambda: verify.verify_rest(JsonAttr.of({}), "ldsIdx_"))
    assert message == "ldsIdx_ stands in rest and in a property or operand of its own; remove one"


def test_short_forms_stand_inside_a_file() -> None:
    op = SdscComputeOp({})
    verify.verify_complete(op)
    op.attributes["partial"] = JsonAttr.of({})
    assert refused(lambda: verify.verify_complete(op)) == (
        "superdsc.compute is in short form outside a superdsc.sdsc in custom syntax; write all its fields"
    )


def test_generations_are_known() -> None:
    for version in ("TS25", "TS26", "TSNEW"):
        verify.verify_version(version)
    assert refused(lambda: verify.verify_version("TS27")) == "version must be one of TS25, TS26, TSNEW, got TS27"


@pytest.mark.parametrize(
    "fields", [{}, {"numCoresUsed_": 32}, {"numCoresUsed_": 1}, {"numWkSlicesPerDim_": {"mb": 64}}]
)
def test_cores_that_the_card_has(fields: dict[str, Json]) -> None:
    verify.verify_cores(fields, SPYRE)
    verify.verify_cores({"numCoresUsed_": 6, "numWkSlicesPerDim_": {"mb": 2, "out": 3}}, SPYRE)
    verify.verify_cores({"numCoresUsed_": 6, "numWkSlicesPerDim_": {}}, SPYRE)


@pytest.mark.parametrize("cores", [0, 33])
def test_cores_that_the_card_lacks(cores: int) -> None:
    message = f"numCoresUsed_ is {cores}, the card has 32 cores; split fewer dims or split them less"
    assert refused(lambda: verify.verify_cores({"numCoresUsed_": cores}, SPYRE)) == message


def test_splits_make_the_cores() -> None:
    fields: dict[str, Json] = {"numCoresUsed_": 6, "numWkSlicesPerDim_": {"mb": 2, "out": 4}}
    assert refused(lambda: verify.verify_cores(fields, SPYRE)) == (
        "numWkSlicesPerDim_ gives mb 2 x out 4 = 8 slices, numCoresUsed_ is 6; change a split or the number of cores"
    )


def test_splits_divide_sizes() -> None:
    verify.verify_division(FileContext(splits={"mb": 2}, sizes={"mb": 4, "out": 7}))
    verify.verify_division(FileContext())
    verify.verify_division(FileContext(sizes={"mb": 7}))
    assert refused(lambda: verify.verify_division(FileContext(splits={"mb": 4}, sizes={"mb": 9}))) == (
        "N_ of mb is 9, which its 4 slices do not divide; pad it to 12 or use a divisor of 9"
    )


def test_operands_are_at_most_eight() -> None:
    eight: list[Json] = list(range(8))
    verify.verify_operands(eight, eight, [], SPYRE)
    message = "9 operands in labeledDs_, a kernel takes 8; split the operation"
    assert refused(lambda: verify.verify_operands([], [*eight, 8], [], SPYRE)) == message
    fewer = replace(SPYRE, operands_per_kernel=2)
    assert refused(lambda: verify.verify_operands([], [0, 1, 2], [], fewer)).startswith("3 operands")


def test_nodes_are_for_operands() -> None:
    message = "an allocate node is for operand 2, labeledDs_ has [0, 1]"
    assert refused(lambda: verify.verify_operands([0, 2], [0, 1], [], SPYRE)) == message


@pytest.mark.parametrize("key", ["inputLabeledDs", "outputLabeledDs", "indirectAccessIndexLabeledDs"])
def test_references_are_to_operands(key: str) -> None:
    verify.verify_operands([], [0], [{key: ["Tensor0-idx0"]}, {key: ["odd"]}], SPYRE)
    message = f"{key} names operand 2, labeledDs_ has [0]"
    compute: dict[str, Json] = {key: ["Tensor0-idx0", "Tensor2-idx2"]}
    assert refused(lambda: verify.verify_operands([], [0], [{}, compute], SPYRE)) == message


def node(address: Any, **more: Json) -> dict[str, Json]:
    return {"startAddressCoreCorelet_": {"data_": {"[0, 0, 0]": 0 if more == {} else -1, "[1, 0, 0]": address}}, **more}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (node("x"), "must be a decimal string or an integer"),
        (node("-3"), "is -3; negative ids need isStartAddrSymbolic_ = 1"),
        (node(300), "is 300, which is no multiple of 128 bytes; the stick starts at 256"),
        (node("0", isStartAddrSymbolic_=1), "is 0; with isStartAddrSymbolic_ it must be a negative symbol id"),
    ],
)
def test_starts_that_are_refused(fields: dict[str, Json], message: str) -> None:
    assert refused(lambda: verify.verify_allocate(fields)) == f"start address of core [1, 0, 0] {message}"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        node("256"),
        node(0),
        node("-7", isStartAddrSymbolic_=1),
        {"layoutDimOrder_": ["mb"], "maxDimSizes_": [-1]},
        {"layoutDimOrder_": ["mb"]},
        {"maxDimSizes_": [-1]},
    ],
)
def test_nodes_that_are_right(fields: dict[str, Json]) -> None:
    verify.verify_allocate(fields)


def test_limits_are_one_per_dim() -> None:
    fields: dict[str, Json] = {"layoutDimOrder_": ["mb", "out"], "maxDimSizes_": [-1]}
    message = "maxDimSizes_ has 1 entries for 2 dims of layoutDimOrder_"
    assert refused(lambda: verify.verify_allocate(fields)) == message


@pytest.mark.parametrize(
    ("value", "address"),
    [
        (5, 5),
        ("5", 5),
        ("-5", -5),
        ("9" * 19, int("9" * 19)),
        ("9" * 20, None),
        ("-" + "9" * 19, -int("9" * 19)),
        ("", None),
        ("-", None),
        ("--1", None),
        ("²", None),
        ("1.0", None),
        (1.0, None),
        (True, None),
        (None, None),
    ],
)
def test_addresses_are_integers_or_decimal_strings(value: Json, address: int | None) -> None:
    assert verify.address_of(value) == address
