"""What a file says, and that one wrong number in it is noticed and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.check import Severity, check_value
from spyre_mlir.dialects.superdsc.codec.describe import describe, describe_json
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_from_json
from spyre_mlir.dialects.superdsc.model.descriptor import OpClass
from spyre_mlir.errors import ReadError, SpyreError, UnsupportedError
from tests.paths import DATA
from tests.unit.dialects.superdsc.cases import CASES, Case


def load(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.rpartition("/")[2])
def test_file_gives_the_descriptor(case: Case) -> None:
    ((root, fields),) = load(case.file).items()
    found = describe(sdsc_from_json(root, fields))
    expected = case.descriptor
    assert found == replace(expected, op_format=expected.operands[0].format)
    assert [dict(row) for row in found.slices] == list(fields["coreIdToWkSlice_"].values())


def test_lx_restickify_with_stage_objects_and_a_research_key() -> None:
    found = describe_json(load("superdsc_real/06_ReStickifyOpLx_lx"))
    assert found.op_class is OpClass.RESTICKIFY
    assert found.index == 104
    source, target = found.operands
    assert (source.component, source.order, source.extents, source.stick) == (
        "lx",
        ("out", "x", "mb"),
        (128, 512, 1),
        "out",
    )
    assert (target.extents, target.stick, set(target.start)) == ((512, 128, 1), "x", {"131072"})


def test_back_end_file_is_refused_with_the_place() -> None:
    with pytest.raises(UnsupportedError, match="data-movement DSCs, whose steps are not modelled"):
        describe_json(load("superdsc_real/09_backend_written_sdsc_dcg"))


def test_an_operands_slices_need_not_name_dims_that_it_lacks() -> None:
    value = load("superdsc_worked/b32k_matmul_256x512x128_mb4_out2_in4")
    ((_, top),) = value.items()
    ((_, dsc),) = top["dscs_"][0].items()
    plain = describe_json(value)
    table = {core: {label: row[label] for label in ("in", "mb")} for core, row in top["coreIdToWkSlice_"].items()}
    dsc["scheduleTree_"][0]["coordinates_"]["coreIdToWkSlice_"] = table
    assert describe_json(value) == plain
    assert [str(one) for one in check_value(value, "f.json") if one.severity is Severity.ERROR] == []


def test_a_believed_core_map_is_reported_as_it_is() -> None:
    value = load("superdsc_worked/a32_add_128x256_32core")
    table = value["0_add"]["coreIdToWkSlice_"]
    table["0"], table["1"] = table["1"], table["0"]
    assert [row["mb"] for row in describe_json(value).slices[:3]] == [1, 0, 2]


MATMUL = "superdsc_worked/b32k_matmul_256x512x128_mb4_out2_in4"
MASKED = "superdsc_worked/c32p_sum_lastdim_128x200_padded"
RESTICKIFY = "superdsc_worked/g8_restickify_128x256"

Edit = Callable[[dict[str, Any], dict[str, Any]], object]

BROKEN: dict[str, tuple[str, Edit, type[SpyreError], str]] = {
    "split": (
        MATMUL,
        lambda top, dsc: top["numWkSlicesPerDim_"].update(mb=8),
        ReadError,
        "$.0_batchmatmul.numCoresUsed_",
    ),
    "size": (MATMUL, lambda top, dsc: dsc["N_"].update(in_=510), ReadError, "N_.in_"),
    "divisible size": (MATMUL, lambda top, dsc: dsc["N_"].update(in_=1024), ReadError, "dataStageParam_.0.ss_.in_"),
    "stage": (MATMUL, lambda top, dsc: dsc["dataStageParam_"]["0"]["el_"].update(mb_=63), ReadError, "el_.mb_"),
    "slice": (MATMUL, lambda top, dsc: top["coreIdToWkSlice_"]["5"].update(mb=4), ReadError, "coreIdToWkSlice_.5.mb"),
    "same slices": (MATMUL, lambda top, dsc: top["coreIdToWkSlice_"]["5"].update(mb=0), ReadError, "coreIdToWkSlice_"),
    "no core": (MATMUL, lambda top, dsc: top["coreIdToWkSlice_"].pop("31"), ReadError, "coreIdToWkSlice_"),
    "schedule": (
        MATMUL,
        lambda top, dsc: top["coreIdToDscSchedule"].update({"2": [[0, -1, 0, 0]]}),
        UnsupportedError,
        "coreIdToDscSchedule.2[0]",
    ),
    "core ids": (MATMUL, lambda top, dsc: dsc["coreIdsUsed_"].pop(), ReadError, "coreIdsUsed_"),
    "stick size": (
        MATMUL,
        lambda top, dsc: dsc["primaryDsInfo_"]["KERNEL"].update(stickSize_=[32]),
        ReadError,
        "stickSize_",
    ),
    "word": (MATMUL, lambda top, dsc: dsc["labeledDs_"][1].update(wordLength=4), ReadError, "labeledDs_[1].wordLength"),
    "format": (
        MATMUL,
        lambda top, dsc: dsc["labeledDs_"][1].update(dataFormat_="FP7"),
        UnsupportedError,
        "dataFormat_",
    ),
    "scale": (MATMUL, lambda top, dsc: dsc["labeledDs_"][1].update(scale_=[1, 2]), UnsupportedError, "scale_[1]"),
    "short scale": (MATMUL, lambda top, dsc: dsc["labeledDs_"][1].update(scale_=[1]), ReadError, "scale_"),
    "reduced": (
        MATMUL,
        lambda top, dsc: dsc["labeledDs_"][1].update(scale_=[1, -1]),
        UnsupportedError,
        "coordInfo.out.folds.dim_prop_func",
    ),
    "class": (MATMUL, lambda top, dsc: dsc["labeledDs_"][1].update(dsType_="MODEL"), ReadError, "primaryDsInfo_"),
    "order": (
        MATMUL,
        lambda top, dsc: dsc["scheduleTree_"][1].update(layoutDimOrder_=["in", "mb"]),
        ReadError,
        "layoutDimOrder_",
    ),
    "component": (MATMUL, lambda top, dsc: dsc["scheduleTree_"][1].update(component_="l0"), ReadError, "component_"),
    "address": (
        MATMUL,
        lambda top, dsc: dsc["scheduleTree_"][2]["startAddressCoreCorelet_"]["data_"].update({"[4, 0, 0]": "64"}),
        ReadError,
        "scheduleTree_[2].startAddressCoreCorelet_.data_.[4, 0, 0]",
    ),
    "symbol": (
        MATMUL,
        lambda top, dsc: dsc["scheduleTree_"][2].update(isStartAddrSymbolic_=1),
        ReadError,
        "data_.[0, 0, 0]",
    ),
    "coordinates": (
        MATMUL,
        lambda top, dsc: dsc["scheduleTree_"][0]["coordinates_"]["coordInfo"]["in"]["folds"]["dim_prop_attr"][3].update(
            factor_=3
        ),
        ReadError,
        "coordInfo.in.folds.dim_prop_attr[3]",
    ),
    "own distribution of an operand in HBM": (
        MATMUL,
        lambda top, dsc: dsc["scheduleTree_"][0]["coordinates_"].update(
            coreIdToWkSlice_={str(core): {"mb": (core + 1) % 32, "in": 0} for core in range(32)}
        ),
        UnsupportedError,
        "coordinates_.coreIdToWkSlice_",
    ),
    "own distribution": (
        MATMUL,
        lambda top, dsc: dsc["scheduleTree_"][0]["coordinates_"].update(coreIdToWkSlice_={"0": {"mb": 1}}),
        ReadError,
        "coordinates_.coreIdToWkSlice_.0",
    ),
    "node": (MATMUL, lambda top, dsc: dsc["scheduleTree_"].pop(), ReadError, "scheduleTree_"),
    "input": (
        MATMUL,
        lambda top, dsc: dsc["computeOp_"][0].update(inputLabeledDs=["Tensor1-idx1", "Tensor0-idx0"]),
        ReadError,
        "inputLabeledDs",
    ),
    "output": (
        MATMUL,
        lambda top, dsc: dsc["computeOp_"][0].update(outputLabeledDs=["Tensor1-idx1"]),
        ReadError,
        "outputLabeledDs",
    ),
    "unit": (MATMUL, lambda top, dsc: dsc["computeOp_"][0].update(exUnit="sfp"), UnsupportedError, "computeOp_[0]"),
    "two ops": (MATMUL, lambda top, dsc: dsc["computeOp_"].append({}), ReadError, "computeOp_"),
    "two DSCs": (MATMUL, lambda top, dsc: top["dscs_"].append({}), UnsupportedError, "dscs_"),
    "data op": (MATMUL, lambda top, dsc: top.update(datadscs_=[{}]), UnsupportedError, "datadscs_"),
    "data op with steps of its own": (
        MATMUL,
        lambda top, dsc: (
            top.update(datadscs_=[{}]),
            top["coreIdToDscSchedule"].update({"3": [[0, -1, 0, 1], [-1, 0, 0, 0]]}),
        ),
        UnsupportedError,
        "datadscs_",
    ),
    "mask extent": (
        MASKED,
        lambda top, dsc: dsc.update(coordinateMasking_={"out": [[200, 55]]}),
        ReadError,
        "coordinateMasking_.out",
    ),
    "mask stretches": (
        MASKED,
        lambda top, dsc: dsc.update(coordinateMasking_={"out": [[100, 28], [100, 28]]}),
        UnsupportedError,
        "coordinateMasking_.out",
    ),
    "mask constant": (MASKED, lambda top, dsc: dsc.update(maskingConstId_=1), ReadError, "maskingConstId_"),
    "constant number": (
        MASKED,
        lambda top, dsc: dsc.update(constantInfo_={"3": dsc["constantInfo_"]["0"]}),
        ReadError,
        "constantInfo_",
    ),
    "unclear gap": (
        RESTICKIFY,
        lambda top, dsc: dsc["scheduleTree_"][0].update(backGapCore_={"mb": {"-1": "28"}}),
        UnsupportedError,
        "scheduleTree_[0].backGapCore_",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_wrong_thing_is_named(name: str) -> None:
    file, edit, kind, place = BROKEN[name]
    value = load(file)
    ((root, top),) = value.items()
    ((_, dsc),) = top["dscs_"][0].items()
    edit(top, dsc)
    with pytest.raises(kind) as caught:
        describe_json(value)
    assert caught.value.where is not None
    assert caught.value.where.startswith(f"$.{root}")
    assert caught.value.where.endswith(place)


def test_addresses_are_believed() -> None:
    """A moved but aligned address is no contradiction: it is what the machine must run."""
    value = load(MATMUL)
    ((_, dsc),) = value["0_batchmatmul"]["dscs_"][0].items()
    dsc["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"]["[3, 0, 0]"] = 128
    assert describe_json(value).operands[0].start[3] == "128"


def test_newest_constants_are_text() -> None:
    value = load("superdsc_worked/d32_clamp_128x256")
    ((_, dsc),) = value["0_clip"]["dscs_"][0].items()
    dsc["constantInfo_"]["1"]["data_"]["data_"]["[0, 0, 0]"] = ["16384"]
    assert describe_json(value).constants[1].bits == 0x4000
