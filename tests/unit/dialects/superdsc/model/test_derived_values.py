"""Redundant parts of a file, each rule against numbers worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.model import derived_values
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from tests.paths import DATA
from tests.unit.dialects.superdsc.cases import coordinate


def test_folds() -> None:
    assert derived_values.affine(3) == {"Affine": {"alpha_": 3, "beta_": 0}}
    assert derived_values.prop(4, "core") == {"factor_": 4, "label_": "core"}
    assert derived_values.time_folds() == {
        "dim_prop_func": [{"Affine": {"alpha_": 1, "beta_": 0}}],
        "dim_prop_attr": [{"factor_": 1, "label_": "time"}],
        "data_": {"[0]": "0"},
    }


@pytest.mark.parametrize(
    ("splits", "rows"),
    [
        ({"mb": 2, "out": 2}, [(0, 0), (1, 0), (0, 1), (1, 1)]),
        ({"mb": 2, "in": 2}, [(0, 0), (0, 1), (1, 0), (1, 1)]),  # what a product sums over is the fastest
        ({"in": 2, "out": 2}, [(0, 0), (1, 0), (0, 1), (1, 1)]),
        ({"mb": 2, "in": 1}, [(0, 0), (1, 0)]),
    ],
)
def test_slices_of_cores(splits: dict[str, int], rows: list[tuple[int, ...]]) -> None:
    found = derived_values.slices_of(splits)
    assert [tuple(row[label] for label in splits) for row in found] == rows


def test_no_splits_are_one_core() -> None:
    assert derived_values.slices_of({}) == [{}]


def test_tables_per_core() -> None:
    assert derived_values.per_core(2, [7]) == {"0": [7], "1": [7]}
    assert derived_values.core_key(12) == "[12, 0, 0]"


def manager(names: list[str], data: dict[str, Any]) -> dict[str, Any]:
    factors = [{"factor_": 2, "label_": "core"}, {"factor_": 1, "label_": "corelet"}, {"factor_": 1, "label_": "time"}]
    return {"dim_prop_func": [{name: {}} for name in names], "dim_prop_attr": factors, "data_": data}


def test_start_addresses() -> None:
    data = {"[0, 0, 0]": "0", "[1, 0, 0]": "128"}
    assert derived_values.start_folds(["0", "128"]) == manager(["Map", "Const", "Const"], data)


@pytest.mark.parametrize(("version", "word"), [(Version.TS25, 7), (Version.TS26, 7), (Version.TSNEW, "7")])
def test_constants_are_texts_in_the_newest_files(version: Version, word: object) -> None:
    expected = manager(["Const", "Const", "Map"], {"[0, 0, 0]": [word]})
    assert derived_values.constant_folds(2, 7, version) == expected


def test_stages_hold_the_size_of_a_slice() -> None:
    sizes = {"mb": 4, "out": 128}
    stage: dict[str, Any] = {"name_": "core", "mb_": 2, "out_": 128}
    for version in (Version.TS25, Version.TS26):
        assert derived_values.stages(sizes, {"mb": 2}, version) == {"0": {"ss_": stage, "el_": stage}}
    stage |= {key: {} for key in ("symbolicDimInfo_", "maxSymbolicVolume_", "coreletSplit_", "rowSplit_")}
    stage |= {"peSfpSplit_": {}, "paddingSizes_": {}}
    assert derived_values.stages(sizes, {"mb": 2}, Version.TSNEW) == {"0": {"ss_": stage, "el_": stage}}


def test_sizes_have_an_underscore() -> None:
    assert derived_values.named_sizes({"mb": 4}) == {"name_": "n", "mb_": 4}


@pytest.mark.parametrize(
    ("arguments", "alphas", "factors"),
    [
        ((4, 32, 1, None), [4, 0, 0, 1], [32, 1, 1, 4]),
        ((256, 2, 1, 64), [256, 0, 0, 64, 1], [2, 1, 1, 4, 64]),
        ((200, 1, 1, 64), [200, 0, 0, 64, 1], [1, 1, 1, 4, 64]),
        ((4, 32, -1, None), [1, 0, 0, 1], [1, 1, 1, 1]),
        ((256, 2, -1, 64), [1, 0, 0, 1], [1, 1, 1, 1]),
        ((256, 2, -2, 64), [64, 0, 0, 64, 0], [1, 1, 1, 1, 64]),
        ((256, 2, -2, None), [1, 0, 0, 1], [1, 1, 1, 1]),
    ],
)
def test_coordinates(arguments: tuple[int, int, int, int | None], alphas: list[int], factors: list[int]) -> None:
    """A slice a core; whole sticks and lanes along the stick; one place where the operand lacks the dim."""
    assert derived_values.coordinate(*arguments) == coordinate(alphas, factors)


def test_slices_may_overlap() -> None:
    assert derived_values.coordinate(5, 2, 1, None, step=4) == coordinate([4, 0, 0, 1], [2, 1, 1, 5])


def test_lanes_of_an_fp8_product() -> None:
    """Lane = 64 * half + 8 * group + place; 200 of 128 lanes are two sticks."""
    found = derived_values.product_fp8_coordinate(200, 4, 128)
    assert found == coordinate([200, 0, 0, 128, 8, 64, 1], [4, 1, 1, 2, 8, 2, 8])


def test_names() -> None:
    assert derived_values.node_name(3, "lx") == "allocate-Tensor3_lx"
    assert derived_values.operand_name(3) == "Tensor3"
    assert derived_values.operand_reference(3) == "Tensor3-idx3"


def test_operands_in_device_memory_pass_through_the_scratchpad() -> None:
    present = {"isPresent": 1}
    assert derived_values.memories("hbm", index_tensor=False) == {"hbm": present, "lx": present}
    assert derived_values.memories("hbm", index_tensor=True) == {"hbm": present}
    assert derived_values.memories("lx", index_tensor=False) == {"lx": present}


def test_a_real_file_has_these_parts() -> None:
    """4096 by 128 by 4, cut in 8 along x and 4 along mb, by a research build of the newest front end."""
    ((_, top),) = json.loads((DATA / "superdsc_real/06_ReStickifyOpLx_lx.json").read_text()).items()
    ((_, dsc),) = top["dscs_"][0].items()
    splits, sizes = {"mb": 4, "x": 8, "out": 1}, {"mb": 4, "x": 4096, "out": 128}
    assert json.dumps(dsc["N_"]) == json.dumps(derived_values.named_sizes(sizes))
    stages = derived_values.stages(sizes, splits, Version.TSNEW)
    assert json.dumps(dsc["dataStageParam_"]) == json.dumps(stages)
    assert list(top["coreIdToWkSlice_"].values()) == derived_values.slices_of(splits)
    folds = dsc["scheduleTree_"][1]["coordinates_"]["coordInfo"]["x"]
    assert json.dumps(folds) == json.dumps(derived_values.coordinate(512, 8, 1, 64))
