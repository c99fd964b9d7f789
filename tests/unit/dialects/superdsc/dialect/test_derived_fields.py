"""Fields that follow from others, against public files and, where a part is missing, none."""

from __future__ import annotations

from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.dialect.derived_fields import implied
from spyre_mlir.dialects.superdsc.dialect.fields_op import FieldsOp
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext, LabeledDs, LayoutClass
from tests.unit.dialects.superdsc.cases import DL16, coordinate
from tests.unit.dialects.superdsc.dialect.texts import file_op

KEYS = {
    Level.SDSC: "sdscFoldProps_ sdscFolds_ coreFoldProp_ coreletFoldProp_ numCoresUsed_ coreIdToDsc_ coreIdToWkSlice_ "
    "coreIdToDscSchedule dscs_",
    Level.DSC: "numCoresUsed_ numCoreletsUsed_ coreIdsUsed_ coordinateMasking_ maskingConstId_ dataStageParam_ "
    "scheduleTree_ labeledDs_ constantInfo_ computeOp_",
    Level.ALLOCATE: "nodeType_ name_ prev_ maxDimSizes_ indirectAllocType_ coordinates_",
    Level.LABELED_DS: "dsName_ wordLength memOrg_",
    Level.CONSTANT: "",
    Level.COMPUTE: "location",
}
FILES = {
    "superdsc_real/01_add_512x512_32core_hbm": set(),
    "superdsc_real/06_ReStickifyOpLx_lx": set(),
    "superdsc_worked/c32p_sum_lastdim_128x200_padded": {"coordinateMasking_", "maskingConstId_"},
    "superdsc_worked/b32k_matmul_256x512x128_mb4_out2_in4": set(),
    "superdsc_worked/f32_add_fp32_128x256": set(),
    "superdsc_worked/d32_clamp_128x256": set(),
}


@pytest.mark.parametrize("name", FILES, ids=lambda name: name.rpartition("/")[2])
def test_public_files_have_what_follows(name: str) -> None:
    """But for a mask, which is decided."""
    op = file_op(name)
    for inner in op.walk():
        if isinstance(inner, FieldsOp):
            wanted = set(KEYS[inner.LEVEL].split())
            if "real/01" in name:
                wanted -= {"indirectAllocType_"}  # the oldest generation has none
            fields = inner.fields
            found = implied(inner.LEVEL, fields, inner.context())
            assert set(found) == wanted
            assert {key for key, value in found.items() if fields[key] != value} <= FILES[name]


def context(**changes: Any) -> FileContext:
    """(4, 128) on two cores, all operands in HBM."""
    known: dict[str, Any] = {
        "splits": {"mb": 2},
        "sizes": {"mb": 4, "out": 128},
        "layouts": {"OUTPUT": LayoutClass(("mb", "out"), ("out",))},
        "operands": {0: LabeledDs("OUTPUT", (1, 1), DL16)},
        "components": {0: "hbm", 3: "lx"},
    }
    return FileContext(**known | changes)


def test_nothing_follows_without_what_decides() -> None:
    assert implied(Level.SDSC, {}, context(splits=None)) == {}
    assert implied(Level.DSC, {}, context(splits=None)) == {}
    assert implied(Level.DSC, {}, context(sizes=None)) == {}


def test_tables_per_core() -> None:
    found = implied(Level.SDSC, {}, context())
    assert found["coreIdToWkSlice_"] == {"0": {"mb": 0}, "1": {"mb": 1}}
    assert found["coreIdToDscSchedule"] == {"0": [[-1, 0, 0, 0]], "1": [[-1, 0, 0, 0]]}
    assert implied(Level.DSC, {}, context())["coreIdsUsed_"] == [0, 1]


def test_no_constants_are_a_text() -> None:
    assert implied(Level.DSC, {}, context())["constantInfo_"] == "{}"
    assert implied(Level.DSC, {}, context(has_constants=True))["constantInfo_"] == {}


NODE: dict[str, Any] = {"ldsIdx_": 0, "component_": "hbm", "layoutDimOrder_": ["mb", "out"]}


@pytest.mark.parametrize("key", NODE)
def test_a_node_needs_its_number_component_and_order(key: str) -> None:
    assert implied(Level.ALLOCATE, NODE | {key: None}, context()) == {}


def test_a_node_of_each_generation() -> None:
    found = implied(Level.ALLOCATE, NODE, context())
    assert list(found) == ["nodeType_", "name_", "prev_", "maxDimSizes_", "indirectAllocType_", "coordinates_"]
    assert (found["name_"], found["prev_"], found["maxDimSizes_"]) == ("allocate-Tensor0_hbm", "", [-1, -1])
    assert (found["nodeType_"], found["indirectAllocType_"]) == ("allocate", "no_indirection")
    oldest = implied(Level.ALLOCATE, NODE, context(version=Version.TS25))
    assert oldest == {key: value for key, value in found.items() if key != "indirectAllocType_"}


def test_coordinates_follow_the_class() -> None:
    """Two of four rows a core; two sticks of 64. A dim that has no size counts 1."""
    found = implied(Level.ALLOCATE, NODE, context(layouts={"OUTPUT": LayoutClass(("mb", "out", "x"), ("out",))}))
    assert "coordinates_" not in found  # two scales for three dims
    found = implied(
        Level.ALLOCATE,
        NODE,
        context(
            layouts={"OUTPUT": LayoutClass(("mb", "out", "x"), ("out",))},
            operands={0: LabeledDs("OUTPUT", (1, 1, 1), DL16)},
        ),
    )
    assert found["coordinates_"] == {
        "coordInfo": {
            "mb": coordinate([2, 0, 0, 1], [2, 1, 1, 2]),
            "out": coordinate([128, 0, 0, 64, 1], [1, 1, 1, 2, 64]),
            "x": coordinate([1, 0, 0, 1], [1, 1, 1, 1]),
        },
        "coreIdToWkSlice_": {},
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"operands": {}},
        {"layouts": {}},
        {"sizes": None},
        {"splits": None},
        {"operands": {0: LabeledDs("OUTPUT", (1,), DL16)}},
        {"operands": {0: LabeledDs("OUTPUT", (1, 1), "FP7")}},
    ],
)
def test_coordinates_need_a_class_sizes_scales_and_a_format(changes: dict[str, Any]) -> None:
    assert "coordinates_" not in implied(Level.ALLOCATE, NODE, context(**changes))


def test_operands() -> None:
    both = {"hbm": {"isPresent": 1}, "lx": {"isPresent": 1}}
    entry: dict[str, Any] = {"ldsIdx_": 0, "dataFormat_": DL16, "dsType_": "OUTPUT"}
    named = {"dsName_": "Tensor0", "wordLength": 2}
    assert implied(Level.LABELED_DS, entry, context()) == {**named, "memOrg_": both}
    index = implied(Level.LABELED_DS, entry | {"dsType_": "KERNEL_IDX"}, context())
    assert index == {**named, "memOrg_": {"hbm": {"isPresent": 1}}}
    local = implied(Level.LABELED_DS, entry | {"ldsIdx_": 3}, context())
    assert local == {"dsName_": "Tensor3", "wordLength": 2, "memOrg_": {"lx": {"isPresent": 1}}}
    assert implied(Level.LABELED_DS, entry | {"dataFormat_": "FP7"}, context(components={})) == {"dsName_": "Tensor0"}
    for key in ("ldsIdx_", "dataFormat_"):
        assert implied(Level.LABELED_DS, entry | {key: None}, context()) == {}


def test_constants_and_operations() -> None:
    assert implied(Level.CONSTANT, {}, context()) == {}
    assert implied(Level.COMPUTE, {}, FileContext()) == {"location": "Inner"}
