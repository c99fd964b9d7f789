"""Rules about gathers, on an addition whose first operand is made the indices of rows of the second."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.superdsc.check import gathers
from spyre_mlir.dialects.superdsc.check.gathers import RULES, astray
from tests.unit.backend.check.cases import ADD, ADD1, gather, put
from tests.unit.dialects.superdsc.check.cases import (
    assert_as_published,
    assert_right_files_keep,
    found,
    sdsc,
    starts,
    symbolic,
    told,
    update,
)

START = "scheduleTree_[1].startAddressCoreCorelet_.data_.[{}, 0, 0]"


def test_rules_are_the_published_ones() -> None:
    assert_as_published(RULES, "gather-division gather-start")


def test_right_files_keep_the_rules() -> None:
    assert_right_files_keep(RULES)
    for rows in (100, 128):
        assert found(gathers.gather_division, ADD1, gather("mb"), put(lambda f: f.dsc["N_"], "mb_", rows)) == []


def test_what_lies_along_a_row_is_not_divided() -> None:
    """The indices run along out, so mb, which is cut in 32, lies along the rows."""
    expected = "1: mb runs along the rows of operand 1, which are found by index"
    wrong = [("numWkSlicesPerDim_.mb", expected, "32", "divide out, or use fewer cores")]
    assert found(gathers.gather_division, ADD, gather("out")) == wrong
    assert found(gathers.gather_division, ADD, update(lambda f: f.node(1), indirectAllocType_="value_tensor")) == []


def test_any_dim_of_the_indices_may_be_divided_instead() -> None:
    indices = gather("out", "mb")
    added = put(lambda f: f.top["numWkSlicesPerDim_"], "x", 2)
    named = put(lambda f: f.dsc["N_"], "x_", 4)
    table = update(lambda f: f.dsc["primaryDsInfo_"]["OUTPUT"], layoutDimOrder_=["mb", "out", "x"])
    row = update(lambda f: f.node(1), layoutDimOrder_=["mb", "out", "x"])
    scale = update(lambda f: f.operand(1), scale_=[1, 1, 1])
    other = update(lambda f: f.node(2), layoutDimOrder_=["mb", "out", "x"])
    fewer = update(lambda f: f.top["numWkSlicesPerDim_"], mb=16)
    wrong = found(gathers.gather_division, ADD, indices, added, named, table, row, scale, other, fewer)
    assert [(place, hint) for place, _, _, hint in wrong] == [
        ("numWkSlicesPerDim_.x", "divide mb or out, or use fewer cores")
    ]


def test_cores_take_whole_sticks_of_indices() -> None:
    """128 indices over 32 cores are 4 each, of 32 in a stick; 1024 are a stick each."""
    expected = ("slices of whole sticks of 32 indices", "32 slices of 4", "split mb less, or pad it")
    assert found(gathers.gather_division, ADD, gather("mb")) == [("numWkSlicesPerDim_.mb", *expected)]
    assert found(gathers.gather_division, ADD, gather("mb"), put(lambda f: f.dsc["N_"], "mb_", 1024)) == []


def test_one_index_per_stick_has_no_stick_to_cut() -> None:
    """The stick of the indices runs along a dim that they lack."""
    lacking = update(lambda f: f.operand(0), scale_=[1, -2])
    both = update(lambda f: f.dsc["primaryDsInfo_"]["KERNEL_IDX"], stickDimOrder_=["out"])
    assert found(gathers.gather_division, ADD, gather("mb", "out"), lacking, both) == []


def test_an_indexed_tensor_starts_at_one_address() -> None:
    wrong = found(gathers.gather_start, ADD, gather("mb"), starts(1, lambda core: 4096 + 128 * (core == 7)))
    assert wrong == [(START.format(7), "4096, where core 0 starts in operand 1", "4224")]
    ids = starts(1, lambda core: -1 - core)
    assert found(gathers.gather_start, ADD, gather("mb"), ids, symbolic(1)) == []
    assert found(gathers.gather_start, ADD) == []


def test_addresses_may_be_given_from_outside() -> None:
    view = sdsc(ADD)
    wrong = [told(one, view) for one in astray(view.dscs[0].operands[1], [0, 128] + [0] * 29 + [256])]
    expected = "0, where core 0 starts in operand 1"
    assert wrong == [(START.format(1), expected, "128"), (START.format(31), expected, "256")]
    with pytest.raises(ValueError, match="shorter"):
        list(astray(view.dscs[0].operands[1], [0] * 31))


def test_two_cores_do_not_share_a_stick_of_indices() -> None:
    """96 indices over two cores are 48 each, a stick and a half; 128 are two sticks each."""
    two = update(lambda f: f.top["numWkSlicesPerDim_"], mb=2)
    expected = ("slices of whole sticks of 32 indices", "2 slices of 48", "split mb less, or pad it")
    uneven = put(lambda f: f.dsc["N_"], "mb_", 96)
    assert found(gathers.gather_division, ADD, gather("mb"), two, uneven) == [("numWkSlicesPerDim_.mb", *expected)]
    assert found(gathers.gather_division, ADD, gather("mb"), two) == []
