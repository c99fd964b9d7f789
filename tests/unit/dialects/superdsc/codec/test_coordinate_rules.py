"""Coordinates that sizes and splits alone do not give, with folds worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from spyre_mlir.dialects.superdsc.codec.coordinate_rules import coordinate_rules, own_splits
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand, Window
from tests.unit.dialects.superdsc.cases import DL16, coordinate, small_add

ORDER = ("mb", "out")
BY_COLUMNS = ({"mb": 0, "out": 0}, {"mb": 0, "out": 1})


def test_own_splits_count_the_slices_of_each_dim() -> None:
    operand = replace(small_add().operands[0], slices=({"mb": 2, "out": 0}, {"mb": 0, "out": 0}))
    assert own_splits(operand) == {"mb": 3, "out": 1}
    assert own_splits(small_add().operands[0]) == {}


def test_plain_operands_have_no_rule_of_their_own() -> None:
    assert coordinate_rules(small_add(), 0, ORDER) is None


def test_an_operand_spread_in_its_own_way() -> None:
    """Two cores hold one of two sticks each, and all four rows."""
    spread = replace(small_add().operands[0], slices=BY_COLUMNS)
    view = small_add(operands=(spread, small_add().operands[1]))
    assert coordinate_rules(view, 0, ORDER) == {
        "mb": coordinate([4, 0, 0, 1], [1, 1, 1, 4]),
        "out": coordinate([64, 0, 0, 64, 1], [2, 1, 1, 1, 64]),
    }
    assert coordinate_rules(view, 1, ORDER) is None


def test_dims_that_a_spread_operand_lacks() -> None:
    """One lane per stick where it lacks the stick dim, one element where it lacks another."""
    rows = Operand(("mb",), (4,), None, DL16, ("0", "0"), slices=({"mb": 0}, {"mb": 1}))
    columns = Operand(("out",), (128,), "out", DL16, ("0", "0"), slices=({"out": 0}, {"out": 1}))
    view = small_add(operands=(rows, columns, small_add().operands[2]))
    assert coordinate_rules(view, 0, ORDER) == {
        "mb": coordinate([2, 0, 0, 1], [2, 1, 1, 2]),
        "out": coordinate([64, 0, 0, 64, 0], [1, 1, 1, 1, 64]),
    }
    assert coordinate_rules(view, 1, ORDER) == {
        "mb": coordinate([1, 0, 0, 1], [1, 1, 1, 1]),
        "out": coordinate([64, 0, 0, 64, 1], [2, 1, 1, 1, 64]),
    }


def _product(name: str) -> Descriptor:
    """[4, 256] times [256, 64]; mb cut in two, in, the stick dim of 128 lanes of FP8, in two."""
    left = Operand(("mb", "in"), (4, 256), "in", "SEN143_FP8", ("0",) * 4)
    right = Operand(("in", "out"), (256, 64), "out", "SEN143_FP8", ("0",) * 4)
    result = Operand(("mb", "out"), (4, 64), "out", DL16, ("0",) * 4)
    dims = (Dim("mb", 4, 2), Dim("out", 64), Dim("in", 256, 2))
    return Descriptor(0, name, "pt", OpClass.MATMUL, dims, (left, right, result))


def test_products_of_fp8_take_eight_lanes_of_each_half_stick_in_turn() -> None:
    """Lane = 64 * half + 8 * group + place: eight groups, two halves, eight places."""
    assert coordinate_rules(_product("batchmatmulfp8"), 0, ("mb", "in")) == {
        "mb": coordinate([2, 0, 0, 1], [2, 1, 1, 2]),
        "in": coordinate([128, 0, 0, 128, 8, 64, 1], [2, 1, 1, 1, 8, 2, 8]),
    }
    assert coordinate_rules(_product("batchmatmulfp8"), 1, ("in", "out")) is None
    assert coordinate_rules(_product("batchmatmul"), 0, ("mb", "in")) is None


def test_windows_change_their_dim_of_the_input() -> None:
    """Two windows of three rows, one apart, on each of two cores: four rows each, two apart."""
    dims = (Dim("i", 4, 2), Dim("out", 128), Dim("ki", 3))
    source = Operand(("i", "out"), (6, 128), "out", DL16, ("0", "256"))
    target = Operand(("i", "out"), (4, 128), "out", DL16, ("0", "256"))
    view = Descriptor(
        0, "conv2d", "pt", OpClass.CONVOLUTION, dims, (source, target, target), windows=(Window("i", "ki", 6),)
    )
    assert coordinate_rules(view, 0, ("i", "out")) == {
        "i": coordinate([2, 0, 0, 1], [2, 1, 1, 4], "padded_fullspan_wunneeded"),
        "out": coordinate([128, 0, 0, 64, 1], [1, 1, 1, 2, 64]),
    }
    assert coordinate_rules(view, 1, ("i", "out")) is None
