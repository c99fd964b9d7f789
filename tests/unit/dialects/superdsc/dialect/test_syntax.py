"""Heads of the custom syntax: each written as a person would, read back, and left out where a field is odd."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.superdsc.dialect.syntax import PARSE_HEAD, PRINT_HEAD, Head
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from tests.unit.dialects.superdsc.dialect.texts import constant, reader, starts, written

FOUR = FileContext(splits={"mb": 2, "out": 2})
SIZES: JsonObject = {"name_": "n", "mb_": 128, "out_": 256}
CLASS: JsonObject = {"layoutDimOrder_": ["mb", "out"], "stickDimOrder_": ["out"], "stickSize_": [64]}
NODE: JsonObject = {"ldsIdx_": 0, "component_": "hbm", "layoutDimOrder_": ["mb", "a b"]}
OPERAND: JsonObject = {"ldsIdx_": 1, "dsType_": "OUTPUT", "dataFormat_": "SEN169_FP16", "scale_": [1, -2]}
CONSTANT: JsonObject = {"dataFormat_": "SEN169_FP16", "name_": "clip min"}
ATTRIBUTES: JsonObject = {"dataFormat_": "SEN169_FP16", "fidelity_": "regular"}
COMPUTE: JsonObject = {
    "exUnit": "sfp",
    "opFuncName": "sum",
    "attributes_": ATTRIBUTES,
}


def head(level: Level, fields: JsonObject, context: FileContext = FOUR) -> tuple[str, set[str]]:
    """Text of a head, and the fields that it shows."""
    shown: list[set[str]] = []
    text = written(lambda printer: shown.append(PRINT_HEAD[level](printer, fields, context)))
    return text, shown[0]


def read(level: Level, text: str) -> Head:
    found = Head()
    PARSE_HEAD[level](reader(text), found)
    return found


TWO_STICKS: JsonObject = {**CLASS, "stickDimOrder_": ["in", "out"], "stickSize_": [2, 64]}
HEADS: list[tuple[Level, JsonObject, str]] = [
    (Level.SDSC, {"numWkSlicesPerDim_": {"mb": 32, "out": 1}}, " splits {mb = 32, out = 1}"),
    (Level.DSC, {"N_": SIZES}, " sizes {mb = 128, out = 256}"),
    (Level.DSC, {"primaryDsInfo_": {"KERNEL": CLASS}}, " classes {KERNEL = [mb, out] stick {out = 64}}"),
    (
        Level.DSC,
        {"N_": SIZES, "primaryDsInfo_": {"OUTPUT": CLASS, "KERNEL": TWO_STICKS}},
        (
            " sizes {mb = 128, out = 256} "
            "classes {OUTPUT = [mb, out] stick {out = 64}, KERNEL = [mb, out] stick {in = 2, out = 64}}"
        ),
    ),
    (Level.ALLOCATE, NODE, ' 0 in hbm [mb, "a b"]'),
    (Level.ALLOCATE, NODE | {"isStartAddrSymbolic_": 1}, ' 0 in hbm [mb, "a b"] symbolic'),
    (Level.LABELED_DS, OPERAND, " 1 OUTPUT SEN169_FP16 scale [1, -2]"),
    (Level.COMPUTE, COMPUTE, " sfp sum SEN169_FP16"),
    (Level.COMPUTE, COMPUTE | {"exUnit": "pt"}, " pt sum SEN169_FP16"),
]


@pytest.mark.parametrize(("level", "fields", "text"), HEADS)
def test_heads_are_written_and_read(level: Level, fields: JsonObject, text: str) -> None:
    assert head(level, fields) == (text, set(fields))
    found = read(level, text)
    assert (found.fields, found.short) == (fields, {})


@pytest.mark.parametrize(
    ("start", "text", "short"),
    [
        (
            starts("0", "128", "1024", "1152"),
            "0 + 128 * mb + 1024 * out",
            {"base": 0, "steps": {"mb": 128, "out": 1024}},
        ),
        (starts("-1", "-2", "-3", "-4"), "-1 + -1 * mb + -2 * out", {"base": -1, "steps": {"mb": -1, "out": -2}}),
        (starts("256", "256", "256", "256"), "256", {"base": 256, "steps": {}}),
        (starts("0", "128"), "[0, 128]", [0, 128]),
    ],
)
def test_starts_are_written_short(start: JsonObject, text: str, short: Json) -> None:
    fields = NODE | {"startAddressCoreCorelet_": start}
    assert head(Level.ALLOCATE, fields) == (f' 0 in hbm [mb, "a b"] start {text}', set(fields))
    found = read(Level.ALLOCATE, f' 0 in hbm [mb, "a b"] start {text}')
    assert (found.fields, found.short) == (NODE, {"startAddressCoreCorelet_": short})


def test_constants_are_written_as_bits() -> None:
    fields = CONSTANT | {"data_": constant(7)}
    text = ' bits 7 of SEN169_FP16 named "clip min"'
    assert head(Level.CONSTANT, fields) == (text, set(fields))
    found = read(Level.CONSTANT, text)
    assert (found.fields, found.short) == (CONSTANT, {"data_": 7})


ODD: list[tuple[Level, JsonObject]] = [
    (Level.SDSC, {"numWkSlicesPerDim_": {"mb": "2"}}),
    (Level.DSC, {"N_": {"mb_": 1}}),
    (Level.DSC, {"primaryDsInfo_": [CLASS]}),
    (Level.DSC, {"primaryDsInfo_": {"A": CLASS, "B": CLASS | {"more": 1}}}),
    (Level.DSC, {"primaryDsInfo_": {"A": dict(reversed(CLASS.items()))}}),
    (Level.DSC, {"primaryDsInfo_": {"A": CLASS | {"layoutDimOrder_": [1]}}}),
    (Level.DSC, {"primaryDsInfo_": {"A": CLASS | {"stickDimOrder_": [1]}}}),
    (Level.DSC, {"primaryDsInfo_": {"A": CLASS | {"stickSize_": ["64"]}}}),
    (Level.DSC, {"primaryDsInfo_": {"A": CLASS | {"stickSize_": [64, 2]}}}),
    (Level.DSC, {"primaryDsInfo_": {"A": TWO_STICKS | {"stickDimOrder_": ["out", "out"]}}}),
    *((Level.ALLOCATE, NODE | {key: None}) for key in NODE),
    *((Level.LABELED_DS, OPERAND | {key: None}) for key in OPERAND),
    *((Level.CONSTANT, CONSTANT | {"data_": constant(7), key: None}) for key in ("name_", "dataFormat_", "data_")),
    *((Level.COMPUTE, COMPUTE | {key: None}) for key in COMPUTE),
    (Level.COMPUTE, COMPUTE | {"exUnit": "pe"}),
    (Level.COMPUTE, COMPUTE | {"attributes_": ATTRIBUTES | {"fidelity_": "high"}}),
    (Level.COMPUTE, COMPUTE | {"attributes_": {"dataFormat_": 3, "fidelity_": "regular"}}),
]


@pytest.mark.parametrize(("level", "fields"), ODD)
def test_odd_fields_have_no_head(level: Level, fields: JsonObject) -> None:
    assert head(level, fields) == ("", set())


def test_a_flag_that_is_no_number_and_an_odd_start_are_left_out() -> None:
    plain = (' 0 in hbm [mb, "a b"]', set(NODE))
    assert head(Level.ALLOCATE, NODE | {"isStartAddrSymbolic_": True}) == plain
    assert head(Level.ALLOCATE, NODE | {"startAddressCoreCorelet_": {}}) == plain


@pytest.mark.parametrize("level", PRINT_HEAD)
def test_a_head_may_be_missing(level: Level) -> None:
    found = read(level, "fields {}")
    assert (found.fields, found.short) == ({}, {})


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (Level.SDSC, "splits {mb = x}"),
        (Level.DSC, "classes {A = [mb] sticks {mb = 64}}"),
        (Level.ALLOCATE, "0 at hbm [mb]"),
        (Level.ALLOCATE, "0 in hbm [mb] start 1 + 2 mb"),
        (Level.LABELED_DS, "0 OUTPUT SEN169_FP16 [1]"),
        (Level.CONSTANT, "bits 7 SEN169_FP16"),
        (Level.CONSTANT, "bits 7 of SEN169_FP16 clip"),
        (Level.COMPUTE, "sfp sum [SEN169_FP16]"),
        (Level.SDSC, "splits {mb = true}"),
        (Level.DSC, "sizes {mb = true}"),
        (Level.DSC, "classes {A = [mb] stick {mb = true}}"),
        (Level.ALLOCATE, "0 in hbm [mb] start true"),
        (Level.ALLOCATE, "0 in hbm [mb] start [true]"),
        (Level.ALLOCATE, "0 in hbm [mb] start 0 + true * mb"),
        (Level.LABELED_DS, "0 OUTPUT SEN169_FP16 scale [true]"),
        (Level.CONSTANT, "bits true of SEN169_FP16 named clip"),
    ],
)
def test_broken_heads_are_refused(level: Level, text: str) -> None:
    with pytest.raises(ParseError):
        read(level, text)


@pytest.mark.parametrize("level", [Level.ALLOCATE, Level.LABELED_DS])
def test_a_truth_is_no_operand_number(level: Level) -> None:
    assert read(level, "true in hbm [mb]").fields == {}


def test_sizes_of_no_dims() -> None:
    fields: Any = {"N_": {"name_": "n"}}
    assert head(Level.DSC, fields) == (" sizes {}", {"N_"})
    assert read(Level.DSC, " sizes {}").fields == fields
