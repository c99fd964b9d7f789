"""What the parts of a file know of each other, read from deciding fields and from odd ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.file_context import (
    FileContext,
    LabeledDs,
    LayoutClass,
    plain_sizes,
    sizes_in,
    version_of,
)
from spyre_mlir.dialects.superdsc.model.json_value import Json
from tests.paths import DATA


def test_a_file_that_says_nothing() -> None:
    context = FileContext()
    assert (context.version, context.splits, context.sizes, context.cores) == (Version.TS26, None, None, None)
    assert (context.layouts, context.operands, context.components) == ({}, {}, {})
    assert (context.has_constants, context.op_name, context.slices()) == (False, "", [])


@pytest.mark.parametrize(
    ("splits", "cores"),
    [
        ({"mb": 2, "out": 3}, 6),
        ({"mb": 4096}, 4096),
        ({"mb": 4097}, None),
        ({"mb": 0}, None),
        ({"mb": -1, "out": -1}, None),
        ({}, None),
        ({"mb": "2"}, None),
        (None, None),
    ],
)
def test_splits_are_usable_or_none(splits: Json, cores: int | None) -> None:
    context = FileContext(splits={"x": 1})
    context.read_sdsc({"numWkSlicesPerDim_": splits})
    assert context.cores == cores
    assert len(context.slices()) == (cores or 0)


def test_slices_follow_the_splits() -> None:
    assert FileContext(splits={"mb": 2}).slices() == [{"mb": 0}, {"mb": 1}]


def test_a_dsc_decides_sizes_and_classes() -> None:
    context = FileContext()
    entry = {"layoutDimOrder_": ["mb", "out"], "stickDimOrder_": ["out"], "stickSize_": [64]}
    odd = {"A": entry | {"layoutDimOrder_": 1}, "B": entry | {"stickDimOrder_": None}, "C": 3}
    context.read_dsc({"N_": {"name_": "n", "mb_": 4}, "primaryDsInfo_": {**odd, "OUTPUT": entry}})
    assert context.sizes == {"mb": 4}
    assert context.layouts == {"OUTPUT": LayoutClass(("mb", "out"), ("out",))}
    context.read_dsc({})
    assert context.sizes is None


ENTRY: dict[str, Json] = {"ldsIdx_": 2, "dsType_": "OUTPUT", "scale_": [1, -1], "dataFormat_": "SEN169_FP16"}


def test_operands_and_their_memories() -> None:
    context = FileContext()
    context.read_labeled_ds(ENTRY)
    context.read_allocate({"ldsIdx_": 2, "component_": "lx"})
    assert context.operands == {2: LabeledDs("OUTPUT", (1, -1), "SEN169_FP16")}
    assert context.components == {2: "lx"}


@pytest.mark.parametrize("key", ENTRY)
def test_odd_operands_are_passed_over(key: str) -> None:
    context = FileContext()
    context.read_labeled_ds(ENTRY | {key: None})
    context.read_allocate({"ldsIdx_": None, "component_": "lx"})
    context.read_allocate({"ldsIdx_": 2, "component_": 3})
    assert context == FileContext()


@pytest.mark.parametrize(
    ("value", "plain", "any_sizes"),
    [
        ({"name_": "n", "mb_": 4, "out_": 5}, {"mb": 4, "out": 5}, {"mb": 4, "out": 5}),
        ({"name_": "n"}, {}, {}),
        ({"name_": "n", "mb_": 4, "paddingSizes_": {}}, None, {"mb": 4}),
        ({"mb_": 4, "name_": "n"}, None, None),
        ({"mb_": 4}, None, None),
        ({"name_": "core", "mb_": 4}, None, None),
        ({"name_": "n", "mb_": 4.0}, None, None),
        ({"name_": "n", "mb": 4}, None, None),
        ({}, None, None),
        ([], None, None),
    ],
)
def test_sizes_per_label(value: Json, plain: dict[str, int] | None, any_sizes: dict[str, int] | None) -> None:
    assert plain_sizes(value) == plain
    assert sizes_in(value) == any_sizes


OLD: dict[str, Any] = {"scheduleTree_": [{"nodeType_": "allocate"}]}
NEW: dict[str, Any] = {"dataStageParam_": {"0": {"ss_": {"symbolicDimInfo_": {}}}}}
LATER: dict[str, Any] = {"scheduleTree_": [{}, {"indirectAllocType_": "no_indirection"}]}


@pytest.mark.parametrize(
    ("dscs", "version"),
    [
        ([{"add": OLD}], Version.TS25),
        ([{"add": LATER}], Version.TS26),
        ([{"add": NEW}], Version.TSNEW),
        ([{"add": OLD | NEW}], Version.TSNEW),
        ([{"add": {}}], Version.TS26),
        ([{"add": {}}, {"sub": OLD}], Version.TS25),
        ([{"add": LATER}, {"sub": NEW}], Version.TSNEW),
        ([{"add": {"scheduleTree_": []}}], Version.TS26),
        ([{"add": {"scheduleTree_": [3]}}], Version.TS25),
        ([3, {"add": 3}], Version.TS26),
        ([{"add": {"dataStageParam_": {"1": NEW["dataStageParam_"]["0"]}}}], Version.TS26),
        ([], Version.TS26),
        (None, Version.TS26),
    ],
)
def test_generations_by_their_shape(dscs: Json, version: Version) -> None:
    assert version_of({"dscs_": dscs}) is version


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("superdsc_real/01_add_512x512_32core_hbm", Version.TS25),
        ("superdsc_real/06_ReStickifyOpLx_lx", Version.TSNEW),
        ("superdsc_worked/a1_add_128x256_1core", Version.TS26),
    ],
)
def test_generations_of_public_files(file: str, version: Version) -> None:
    ((_, fields),) = json.loads((DATA / f"{file}.json").read_text()).items()
    assert version_of(fields) is version


def test_facts_are_values() -> None:
    assert (
        len({LayoutClass(("mb",), ()), LayoutClass(("mb",), ())})
        == len({LabeledDs("A", (1,), "x"), LabeledDs("A", (1,), "x")})
        == 1
    )
