"""Rules about folds and coordinates, on an addition of (128, 256) with 32 cores and on one change each."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.superdsc.check import coordinates
from spyre_mlir.dialects.superdsc.check.coordinates import RULES
from spyre_mlir.dialects.superdsc.codec.cursor import Misread
from tests.unit.backend.check.cases import ADD, BIAS, CLIP, SUM, Opened, drop, put
from tests.unit.dialects.superdsc.check.cases import (
    Change,
    Found,
    assert_as_published,
    assert_right_files_keep,
    found,
    update,
)

INFO = "scheduleTree_[0].coordinates_.coordInfo"
FUNCTIONS = "one of Affine, Const, Map, WkSplit"


def folds(dim: str = "mb") -> str:
    return f"{INFO}.{dim}.folds"


def test_rules_are_the_published_ones() -> None:
    names = "fold-lengths fold-extents fold-data coordinate-dims coordinate-folds coordinate-elements"
    assert_as_published(RULES, names)


def test_right_files_keep_the_rules() -> None:
    assert_right_files_keep(RULES)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (
            lambda f: f.top["sdscFolds_"]["dim_prop_attr"].clear(),
            [("sdscFolds_.dim_prop_func", "0 functions, one per extent", "1")],
        ),
        (
            lambda f: f.node(1)["startAddressCoreCorelet_"]["dim_prop_func"].pop(),
            [("scheduleTree_[1].startAddressCoreCorelet_.dim_prop_func", "3 functions, one per extent", "2")],
        ),
        (
            lambda f: f.dsc["constantInfo_"]["1"]["data_"]["dim_prop_attr"].pop(),
            [("constantInfo_.1.data_.dim_prop_func", "2 functions, one per extent", "3")],
        ),
        (
            lambda f: f.coordinate(0, "mb")["folds"]["dim_prop_attr"].pop(),
            [(f"{folds()}.dim_prop_func", "3 functions, one per extent", "4")],
        ),
        (
            put(lambda f: f.coordinate(0, "mb"), "elemArr", 2),
            [(f"{folds()}.dim_prop_func", "5 functions, elemArr + 3", "4")],
        ),
    ],
)
def test_folds_have_a_function_and_an_extent_each(change: Change, wrong: Found) -> None:
    assert found(coordinates.fold_lengths, CLIP, change) == wrong


@pytest.mark.parametrize(
    ("functions", "got"),
    [({"Affine": {}, "Map": {}}, '{"Affine":{},"Map":{}}'), ({"Afine": {}}, '{"Afine":{}}'), ({}, "{}")],
)
def test_a_fold_has_one_known_function(functions: dict[str, object], got: str) -> None:
    change = put(lambda f: f.top["sdscFolds_"]["dim_prop_func"], 0, functions)
    assert found(coordinates.fold_extents, ADD, change) == [("sdscFolds_.dim_prop_func[0]", FUNCTIONS, got)]


@pytest.mark.parametrize("name", ["Const", "Map", "WkSplit"])
def test_every_function_of_the_format_is_known(name: str) -> None:
    assert (
        found(coordinates.fold_extents, ADD, put(lambda f: f.top["sdscFolds_"]["dim_prop_func"], 0, {name: {}})) == []
    )


def test_a_fold_has_a_step_or_more() -> None:
    change = put(lambda f: f.top["sdscFolds_"]["dim_prop_attr"][0], "factor_", 0)
    assert found(coordinates.fold_extents, ADD, change) == [("sdscFolds_.dim_prop_attr[0].factor_", "1 or more", "0")]


def test_a_fold_has_a_name() -> None:
    with pytest.raises(Misread, match="expected a string, got 3"):
        found(coordinates.fold_extents, ADD, put(lambda f: f.top["sdscFolds_"]["dim_prop_attr"][0], "label_", 3))


def test_files_without_folds_of_their_own_have_none_to_check() -> None:
    for rule in RULES:
        assert found(rule, ADD, drop(lambda f: f.top, "sdscFolds_"), drop(lambda f: f.node(0), "coordinates_")) == []


@pytest.mark.parametrize(
    "key", ["[0, 0]", "[1]", "[-1]", "[]", "[x]", "[²]", pytest.param("[" + "9" * 5000 + "]", id="5000 digits")]
)
def test_data_stand_under_an_index_per_fold(key: str) -> None:
    """The fold of the whole file has one step: index 0."""
    change = put(lambda f: f.top["sdscFolds_"]["data_"], key, "0")
    wrong = [(f"sdscFolds_.data_.{key}", "a key of 1 indices below [1]", key)]
    assert found(coordinates.fold_data, ADD, change) == wrong


def test_start_addresses_have_an_index_below_each_extent() -> None:
    def change(f: Opened) -> None:
        f.start(1).update({"[32, 0, 0]": "0", "[31,0, 0]": "0"})

    place = "scheduleTree_[1].startAddressCoreCorelet_.data_.[32, 0, 0]"
    expected = [(place, "a key of 3 indices below [32, 1, 1]", "[32, 0, 0]")]
    assert found(coordinates.fold_data, ADD, change) == expected


def test_every_dim_has_a_coordinate() -> None:
    wrong = found(coordinates.coordinate_dims, ADD, drop(lambda f: f.node(0)["coordinates_"]["coordInfo"], "mb"))
    assert wrong == [(INFO, "dims ['mb', 'out']", "['out']")]
    wrong = found(coordinates.coordinate_dims, ADD, put(lambda f: f.node(0)["coordinates_"], "coordInfo", {}))
    assert wrong == [(INFO, "dims ['mb', 'out']", "[]")]


@pytest.mark.parametrize(
    ("file", "dim", "part", "number", "entry", "wanted"),
    [
        (ADD, "mb", "dim_prop_func", 0, {"Affine": {"alpha_": 8, "beta_": 0}}, '{"Affine":{"alpha_":4,"beta_":0}}'),
        (ADD, "out", "dim_prop_func", 3, {"Affine": {"alpha_": 1, "beta_": 0}}, '{"Affine":{"alpha_":64,"beta_":0}}'),
        (
            ADD,
            "out",
            "dim_prop_attr",
            4,
            {"factor_": 32, "label_": "elem_arr_0"},
            '{"factor_":64,"label_":"elem_arr_0"}',
        ),
        (ADD, "mb", "dim_prop_attr", 0, {"factor_": 1, "label_": "core_fold"}, '{"factor_":32,"label_":"core_fold"}'),
    ],
)
def test_folds_say_what_sizes_and_splits_say(
    file: str, dim: str, part: str, number: int, entry: dict[str, object], wanted: str
) -> None:
    """4 rows a core of 128; 256 columns are 4 sticks of 64."""
    change = put(lambda f: f.coordinate(0, dim)["folds"][part], number, entry)
    got = str(entry).replace("'", '"').replace(" ", "")
    assert found(coordinates.coordinate_folds, file, change) == [(f"{folds(dim)}.{part}[{number}]", wanted, got)]
    gathered = update(lambda f: f.node(0), indirectAllocType_="value_tensor")
    assert found(coordinates.coordinate_folds, file, change, gathered) == []
    elements = put(lambda f: f.coordinate(0, dim), "elemArr", 3)
    assert found(coordinates.coordinate_folds, file, change, elements) == []


def test_coordinates_of_dims_nobody_knows_have_no_folds_to_say() -> None:
    """Other rules name such dims."""

    def change(f: Opened) -> None:
        info = f.node(0)["coordinates_"]["coordInfo"]
        info["x"] = info["mb"] | {"folds": {}}

    assert found(coordinates.coordinate_folds, ADD, change) == []


def test_coordinates_count_two_folds_along_the_stick() -> None:
    """One elsewhere, and where the operand lacks the stick dim for another reason than a reduction."""
    wrong = found(coordinates.coordinate_elements, ADD, put(lambda f: f.coordinate(0, "mb"), "elemArr", 2))
    assert wrong == [(f"{INFO}.mb.elemArr", "1", "2")]
    wrong = found(coordinates.coordinate_elements, ADD, put(lambda f: f.coordinate(0, "out"), "elemArr", 1))
    assert wrong == [(f"{INFO}.out.elemArr", "2", "1")]
    reduced = put(lambda f: f.coordinate(1, "out"), "elemArr", 1)
    (wrong_sum,) = found(coordinates.coordinate_elements, SUM, reduced)
    assert wrong_sum == (INFO.replace("[0]", "[1]") + ".out.elemArr", "2", "1")
    lacking = update(lambda f: f.operand(1), scale_=[-1, -1])
    (wrong_bias,) = found(coordinates.coordinate_elements, BIAS, lacking)
    assert wrong_bias[1:] == ("1", "2")
    windowed = update(lambda f: f.node(0), padding_={})
    assert (
        found(coordinates.coordinate_elements, ADD, put(lambda f: f.coordinate(0, "mb"), "elemArr", 2), windowed) == []
    )
