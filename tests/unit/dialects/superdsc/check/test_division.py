"""Rules about the division over cores and its padding, each at the last value that keeps it and the first beyond."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.superdsc.check import division
from spyre_mlir.dialects.superdsc.check.division import RULES
from spyre_mlir.dialects.superdsc.model import derived_values
from tests.unit.backend.check.cases import ADD, ADD1, K_SPLIT, PADDED, RESTICK, SUM_ROWS, Opened, put
from tests.unit.dialects.superdsc.check.cases import (
    Change,
    assert_as_published,
    assert_right_files_keep,
    found,
    update,
)


def top(**members: object) -> Change:
    return update(lambda f: f.top, **members)


def size(label: str, value: object) -> Change:
    return put(lambda f: f.dsc["N_"], f"{label}_", value)


def no_dscs(f: Opened) -> None:
    f.top["dscs_"] = []


def test_rules_are_the_published_ones() -> None:
    names = "splits-product cores-on-card split-divides size-divided slices-distinct core-map-order stage-sizes"
    assert_as_published(RULES, f"{names} whole-sticks one-reduction-split mask-extents mask-constant mask-dims")


def test_right_files_keep_the_rules() -> None:
    assert_right_files_keep(RULES)


def test_the_splits_make_the_cores() -> None:
    wrong = found(division.splits_product, RESTICK, top(numCoresUsed_=16))
    hint = "change a split or the number"
    assert wrong == [("numCoresUsed_", "the product of the splits mb 2 x out 4, 8", "16", hint)]


@pytest.mark.parametrize(("cores", "wrong"), [(0, True), (1, False), (32, False), (33, True)])
def test_the_card_has_32_cores(cores: int, wrong: bool) -> None:
    expected = [("numCoresUsed_", "1 to 32, the card's cores", str(cores), "split less")] if wrong else []
    assert found(division.cores_on_card, ADD, top(numCoresUsed_=cores)) == expected


@pytest.mark.parametrize(("rows", "padded"), [(127, 128), (33, 64), (0, 32), (-32, 32), (1, 32), (32, None)])
def test_slices_divide_sizes(rows: int, padded: int | None) -> None:
    hint = f"pad it to {padded}, or split mb by a divisor"
    wrong = [("N_.mb_", "a positive multiple of its 32 slices", str(rows), hint)] if padded else []
    assert found(division.split_divides, ADD, size("mb", rows)) == wrong


@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [("x_", 4, True), ("x_", 0, True), ("x_", -1, False), ("x_", {}, False), ("q_", 4, False)],
)
def test_what_has_a_size_has_a_split(key: str, value: object, wrong: bool) -> None:
    """A size of -1 says that there is none; q is no dim."""
    expected = [(f"N_.{key}", "dims of the work division, ['mb', 'out']", "x")] if wrong else []
    assert found(division.size_divided, ADD, put(lambda f: f.dsc["N_"], key, value)) == expected


def _slice(core: int, **row: int) -> Change:
    return update(lambda f: f.top["coreIdToWkSlice_"][str(core)], **row)


def test_cores_have_slices_of_their_own() -> None:
    rule, place = division.slices_distinct, "coreIdToWkSlice_.7"
    row = '{"mb":6,"out":0}'
    assert found(rule, ADD, _slice(7, mb=6)) == [(place, "slices that differ from those of core 6", row)]
    assert found(rule, ADD, _slice(7, mb=32)) == [(f"{place}.mb", "a slice from 0 to 31", "32")]
    assert found(rule, ADD, _slice(7, mb=-1)) == [(f"{place}.mb", "a slice from 0 to 31", "-1")]
    assert found(rule, ADD, _slice(7, out=1)) == [(f"{place}.out", "a slice from 0 to 0", "1")]
    assert found(rule, ADD, _slice(7, x=1)) == [(f"{place}.x", "dims ['mb', 'out']", "x")]
    assert found(rule, ADD, _slice(7, mb=6), no_dscs) == []


def test_the_first_dim_is_fastest() -> None:
    """Cores 0 and 1 of two rows of slices change places; only the first core that is off is named."""
    swapped = _slice(0, mb=1), _slice(1, mb=0)
    wrong = [("coreIdToWkSlice_.0", "slices {'mb': 0, 'out': 0} for core 0", '{"mb":1,"out":0}')]
    assert found(division.core_map_order, RESTICK, *swapped) == wrong
    assert found(division.core_map_order, RESTICK, *swapped, no_dscs) == []
    slowest = _slice(31, mb=0)
    ((place, expected, _),) = found(division.core_map_order, K_SPLIT, slowest)
    assert (place, expected) == ("coreIdToWkSlice_.31", "slices {'in': 3, 'mb': 3, 'out': 1} for core 31")


def test_columns_of_a_product_may_be_fastest() -> None:
    """Four slices of rows and two of columns, by hand; no rows of another op may be counted so."""
    rows = [{"out": core % 2, "mb": core // 2, "in": 0} for core in range(8)]
    assert derived_values.slices_by_columns({"mb": 4, "out": 2, "in": 1}) == rows
    assert derived_values.slices_by_columns({"mb": 4, "out": 2, "in": 4}) == []
    assert derived_values.slices_by_columns({"mb": 4, "out": 2}) == []


@pytest.mark.parametrize("stage", ["ss_", "el_"])
def test_stages_have_the_size_of_a_slice(stage: str) -> None:
    wrong = found(division.stage_sizes, ADD, put(lambda f: f.dsc["dataStageParam_"]["0"][stage], "mb_", 8))
    assert wrong == [(f"dataStageParam_.0.{stage}.mb_", "128 in 32 slices, 4", "8")]
    assert found(division.stage_sizes, ADD, lambda f: f.dsc.pop("dataStageParam_")) == []


def test_cores_have_whole_sticks() -> None:
    """128 columns over four cores are 32, half a stick; the output has its sticks along mb."""
    hint = "split out less, or pad it"
    wrong = found(division.whole_sticks, RESTICK, size("out", 128))
    assert wrong == [("N_.out_", "a multiple of 64 per core for operand 0", "32", hint)]
    wrong = found(division.whole_sticks, RESTICK, size("mb", 64))
    assert wrong == [("N_.mb_", "a multiple of 64 per core for operand 1", "32", "split mb less, or pad it")]
    assert found(division.whole_sticks, ADD, size("out", 100)) == []  # not divided
    lacking = update(lambda f: f.operand(0), scale_=[1, -2])
    assert found(division.whole_sticks, RESTICK, size("out", 128), lacking) == []
    indices = update(lambda f: f.operand(0), dsType_="KERNEL_IDX")
    table = put(
        lambda f: f.dsc["primaryDsInfo_"], "KERNEL_IDX", {"layoutDimOrder_": ["mb", "out"], "stickDimOrder_": ["out"]}
    )
    assert found(division.whole_sticks, RESTICK, size("out", 128), table, indices) == []


def test_one_reduced_dim_is_divided() -> None:
    """mb is cut in 8 and out in 4, the sum over rows keeps out."""
    assert found(division.one_reduction_split, SUM_ROWS) == []
    wrong = found(division.one_reduction_split, SUM_ROWS, update(lambda f: f.operand(1), scale_=[-1, -2]))
    place, expected = "numWkSlicesPerDim_", "one divided dim that is summed over"
    assert wrong == [(place, expected, "['mb', 'out']")]


@pytest.mark.parametrize(
    ("pairs", "place", "expected", "got"),
    [
        ([[200, 55]], "out", "extents that add up to 256, the size of out", "[[200,55]]"),
        ([[100, 28], [100, 28]], "", "", ""),
        ([[256, 0]], "", "", ""),
        ([[0, 256]], "", "", ""),
        ([[200, 28, 28]], "out[0]", "a valid and a padding extent", "[200,28,28]"),
        ([[257, -1]], "out[0]", "a valid and a padding extent", "[257,-1]"),
    ],
)
def test_masked_extents_make_the_size(pairs: list[list[int]], place: str, expected: str, got: str) -> None:
    wrong = found(division.mask_extents, PADDED, put(lambda f: f.dsc, "coordinateMasking_", {"out": pairs}))
    assert wrong == ([(f"coordinateMasking_.{place}", expected, got)] if place else [])


@pytest.mark.parametrize(
    ("file", "constant", "expected"),
    [
        (PADDED, 0, None),
        (PADDED, 1, "-1 or one of 1 constants"),
        (PADDED, -2, "-1 or one of 1 constants"),
        (PADDED, -1, "a constant, as dims are masked"),
        (ADD, 0, "-1 or one of 0 constants"),
        (ADD, -1, None),
    ],
)
def test_a_mask_names_a_constant(file: str, constant: int, expected: str | None) -> None:
    wrong = found(division.mask_constant, file, put(lambda f: f.dsc, "maskingConstId_", constant))
    assert wrong == ([("maskingConstId_", expected, str(constant))] if expected else [])


def test_a_constant_without_a_mask_is_named_in_vain() -> None:
    wrong = found(division.mask_constant, PADDED, put(lambda f: f.dsc, "coordinateMasking_", {}))
    assert wrong == [("maskingConstId_", "-1, as no dim is masked", "0")]


def _named(function: str) -> Change:
    return update(lambda f: f.compute, opFuncName=function)


def test_masks_stand_on_dims_reduced_along_the_stick() -> None:
    """Or on what exp has in its sticks."""
    rows = put(lambda f: f.dsc, "coordinateMasking_", {"mb": [[100, 28]]})
    columns = put(lambda f: f.dsc, "coordinateMasking_", {"out": [[200, 56]]})
    expected = "a mask on a dim that is reduced along the stick, not on"
    assert found(division.mask_dims, PADDED, rows) == [("coordinateMasking_.mb", f"{expected} mb", "[[100,28]]")]
    assert found(division.mask_dims, ADD1, columns) == [("coordinateMasking_.out", f"{expected} out", "[[200,56]]")]
    assert found(division.mask_dims, ADD1, columns, _named("exp")) == []
    assert found(division.mask_dims, ADD1, rows, _named("exp")) == [
        ("coordinateMasking_.mb", f"{expected} mb", "[[100,28]]")
    ]
