"""Records of hardware functions: names with and without suffix, and facts that follow from one another."""

from __future__ import annotations

import pytest

from spyre_mlir.hw.certainty import Tag
from spyre_mlir.hw.formats import INFINITY_STAND_IN
from spyre_mlir.hw.number_formats import dl16
from spyre_mlir.ops.hardware_functions import (
    COPY,
    FUNCTIONS,
    SELECT,
    Special,
    function_of,
    neutral_of,
    picks,
    restickifies,
    special_of,
)
from spyre_mlir.ops.table import Unit


def test_names_take_the_suffix_only_where_the_record_says_so() -> None:
    assert function_of("sumnonstick") is FUNCTIONS["sum"]
    assert function_of("sum") is FUNCTIONS["sum"]
    assert function_of("exx2nonstick") is None
    assert function_of("expnonstick") is None
    assert function_of("nonstick") is None


def test_certainty_follows_from_where_a_function_was_seen() -> None:
    tags = {
        name: FUNCTIONS[name].tag for name in ("batchmatmul", "sub", "revsub", "greaterthan", "fnms", "ReStickifyOpLx")
    }
    assert tags == {
        "batchmatmul": Tag.CERTAIN,
        "sub": Tag.CERTAIN,
        "revsub": Tag.LIKELY,
        "greaterthan": Tag.LIKELY,
        "fnms": Tag.INFERRED,
        "ReStickifyOpLx": Tag.LIKELY,
    }


@pytest.mark.parametrize(("name", "sign"), [("max", -1.0), ("min", 1.0)])
def test_masks_of_extremes_are_the_ends_of_half_and_of_dl16(name: str, sign: float) -> None:
    ends = [sign * INFINITY_STAND_IN, sign * dl16.LARGEST]
    assert FUNCTIONS[name].mask_words == tuple(int(word) for word in dl16.encode(ends))
    assert neutral_of(name, 12.0) == sign * 12.0


def test_what_takes_no_part_in_other_reductions_is_zero_in_files() -> None:
    assert neutral_of("sum", 12.0) == neutral_of("nobody", 12.0) == 0.0
    assert FUNCTIONS["sum"].mask_words == FUNCTIONS["add"].mask_words == (0,)
    assert FUNCTIONS["exp"].mask_words == (0xD871,)


def test_functions_that_pick_give_back_an_operand() -> None:
    chosen = {name for name in FUNCTIONS if picks(name)}
    assert chosen == {"maximum", "minimum", SELECT, "neg", "abs", "relufwd", COPY, "max", "min"}
    assert [name for name, function in FUNCTIONS.items() if function.selects] == [SELECT]
    assert not picks("nobody")


def test_everything_that_picks_is_exact() -> None:
    assert all(FUNCTIONS[name].exact for name in FUNCTIONS if picks(name))


def test_matrix_functions_run_on_the_pt_array() -> None:
    on_pt = {name for name, function in FUNCTIONS.items() if function.unit is Unit.PT}
    assert {"batchmatmul", "conv2d", "batchmatmulfp8"} <= on_pt
    assert all(name.startswith(("batchmatmul", "conv2d")) for name in on_pt)


def test_marks_of_single_functions() -> None:
    assert [name for name in FUNCTIONS if restickifies(name)] == ["ReStickifyOpHBM", "ReStickifyOpLx"]
    assert not restickifies("ReStickifyOp")
    assert [name for name, f in FUNCTIONS.items() if f.converts_integers] == ["fp32toint32", "int32tofp32"]
    assert [name for name, f in FUNCTIONS.items() if f.masks_padding] == ["exp"]


def test_rules_of_their_own() -> None:
    assert special_of("topkvalue") is Special.LARGEST
    assert special_of("maxpoolfwd") is special_of("avgpoolfwd") is Special.POOLING
    assert special_of("add") is special_of("nobody") is None
