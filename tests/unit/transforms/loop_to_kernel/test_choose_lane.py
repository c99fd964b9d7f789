"""Which loop goes through the lanes: sticks moved, counted by hand."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.hw.sticks import UNIT, LinearExpr
from spyre_mlir.transforms.loop_to_kernel.choose_lane import (
    candidates,
    cheapest_lane,
    lane_for,
    lane_of_result,
    read_cost,
    result_lane,
    usable_cores,
    write_cost,
)
from spyre_mlir.transforms.loop_to_kernel.data_formats import Forms
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.loop_to_kernel.planning import nest, sent, tensor

DL16, FP32 = "SEN169_FP16", "IEEE_FP32"
A, B = LinearExpr.of("a"), LinearExpr.of("b")
EXTENTS = {"a": 33, "b": 70}
SPACE = tuple(IterDim(name, extent) for name, extent in EXTENTS.items())


def test_sticks_of_a_result() -> None:
    """33 x 70: two sticks a row, one stick a column, or one an element; float32 in blocks of two sticks of 32."""
    assert [write_cost((33, 70), s, DL16) for s in (1, 0, UNIT)] == [66, 70, 33 * 70]
    assert [write_cost((33, 70), s, FP32) for s in (1, 0, UNIT)] == [33 * 4, 70 * 2, 33 * 70]


def test_candidates_are_the_innermost_first_and_sparse_last() -> None:
    assert candidates(SPACE) == ["b", "a", None]


def test_cores_that_a_lane_leaves() -> None:
    """Only loops of the result are divided: whole sticks in the lanes, elements elsewhere."""
    space = (IterDim("a", 32), IterDim("b", 2048))
    assert usable_cores(space, (), "b", 64, SPYRE) == 32
    assert usable_cores(space, ("a",), "b", 64, SPYRE) == 32
    assert usable_cores(space, ("b",), "a", 64, SPYRE) == 1
    assert usable_cores((IterDim("a", 3), IterDim("b", 70)), (), "b", 64, SPYRE) == 6
    assert usable_cores((IterDim("a", 3), IterDim("b", 70)), ("a", "b"), "b", 64, SPYRE) == 1


def computed(p: LayoutPlanner, stick: int, form: str = DL16) -> DeviceForms:
    versions = p.of(tensor(33, 70))
    versions.format = form
    versions.buffers.append(p.fresh((33, 70), form, stick))
    return versions


def test_reading_in_place_costs_its_sticks() -> None:
    p = LayoutPlanner()
    assert read_cost(computed(p, 1), (A, B), "b", EXTENTS) == 66
    assert read_cost(p.of(sent(p, 33, 70)), (A, B), "a", EXTENTS) == 70


def test_reading_a_part_in_place_costs_the_sticks_of_the_part() -> None:
    p, row, column = LayoutPlanner(), (LinearExpr(5), B), (A, LinearExpr(5))
    assert read_cost(computed(p, 1), row, "b", EXTENTS) == 2
    assert read_cost(computed(p, 1, FP32), row, "b", EXTENTS) == 4
    assert read_cost(computed(p, UNIT), row, None, EXTENTS) == 70
    assert read_cost(p.of(sent(p, 33, 70)), column, "a", EXTENTS) == 1
    assert read_cost(computed(p, 1), column, "a", EXTENTS) == 1 + 5.5 * (70 + 66), "all of it is laid out again"


def test_reading_laid_out_again_costs_both_sides_more_than_five_times_and_those_of_float32_three_times() -> None:
    p = LayoutPlanner()
    assert read_cost(computed(p, 1), (A, B), "a", EXTENTS) == 70 + 5.5 * (70 + 66)
    assert read_cost(computed(p, 1, FP32), (A, B), "a", EXTENTS) == 140 + 3 * (140 + 132)


def test_readers_of_parts_share_what_lays_a_tensor_out_again() -> None:
    p, row = LayoutPlanner(), (LinearExpr(5), B)
    assert read_cost(computed(p, 1), row, None, EXTENTS) == 70 + 2 * 33 * 128
    assert read_cost(computed(p, 1), row, None, EXTENTS, readers=4) == 70 + 2 * 33 * 128 // 4
    assert read_cost(computed(p, 1), row, None, EXTENTS, readers=99) == 70 + 2 * 33 * 128 // 33, "there are 33 parts"
    assert read_cost(computed(p, 1), (A, B), None, EXTENTS, readers=4) == 2310 + 2 * 33 * 128, "each reads all of it"
    placed = computed(p, 1)
    placed.placed = True
    assert read_cost(placed, row, None, EXTENTS, readers=4) == 70 + 2 * 33 * 128, "its relayout is counted by cores"


def test_both_sides_have_a_stick_for_every_element_where_one_is_sparse() -> None:
    """33 rows of 128 columns, padding included."""
    p = LayoutPlanner()
    assert read_cost(computed(p, 1), (A, B), None, EXTENTS) == 2310 + 2 * 33 * 128
    assert read_cost(computed(p, UNIT), (A, B), "b", EXTENTS) == 66 + 2 * 33 * 128
    assert read_cost(computed(p, 1, FP32), (A, B), None, EXTENTS) == 2310 + 3 * 2 * 33 * 128


def test_reading_a_copy_is_dearest() -> None:
    assert read_cost(computed(LayoutPlanner(), 1), (A.shifted(1), B), "a", EXTENTS) == 4 * 33 * 70


def test_reading_a_conversion_costs_that_of_its_origin() -> None:
    p = LayoutPlanner()
    value = tensor(33, 70)
    p.of(value).buffers.append(p.fresh((33, 70), DL16, 1))
    wide = p.form(value, FP32)
    assert read_cost(wide, (A, B), "b", EXTENTS) == (132 + 66) + 66
    assert read_cost(wide, (A, B), "a", EXTENTS) == (140 + 70) + (70 + 5.5 * (70 + 66))
    p.buffer(wide, 1)  # it is there now
    assert read_cost(wide, (A, B), "b", EXTENTS) == 132


def pointwise(write: str, result: str, loops: str = "a = 33, b = 70", read: str = "a, b", more: str = "") -> str:
    return f"""func.func @main(%x: tensor<33x70xf32>) -> tensor<{result}xf32> {{
      %0 = spyre.loop.nest [{loops}] ins(%x[{read}] : tensor<33x70xf32>) -> [{write}] : tensor<{result}xf32> {more} {{
      ^bb0(%e: f32):
        spyre.loop.yield %e : f32
      }}
      func.return %0 : tensor<{result}xf32>
    }}"""


def test_lanes_of_a_result() -> None:
    op = nest(pointwise("b, a", "70x33"))
    assert [lane_of_result(op, s, 64) for s in (0, 1, UNIT)] == ["b", "a", None]
    split = nest(pointwise("a * 64 + b", "2112", "a = 33, b = 64"))
    assert lane_of_result(split, 0, 64) == "b"
    assert lane_of_result(nest(pointwise("b * 33 + a", "2310")), 0, 64) is None  # steps of 33 are no whole sticks


def test_a_folded_loop_is_in_no_lanes_of_the_result() -> None:
    op = nest(pointwise("a, 0", "33x1", more='reduce "arith.addf"'))
    assert op.reduced
    assert (result_lane(op, "b"), result_lane(op, "a"), result_lane(op, None)) == (None, "a", None)


@pytest.mark.parametrize(("stick", "lane"), [(1, "b"), (0, "a")])
def test_the_lane_that_the_operand_has_is_cheapest(stick: int, lane: str) -> None:
    op, p = nest(pointwise("a, b", "33x70")), LayoutPlanner()
    assert cheapest_lane(op, Forms(DL16, [computed(p, stick)])) == lane
    assert lane_for(p, op, Forms(DL16, [computed(p, stick)])) == lane


def test_among_equals_the_innermost() -> None:
    text = pointwise("a, b", "64x64", "a = 64, b = 64").replace("33x70", "64x64")
    p = LayoutPlanner()
    assert cheapest_lane(nest(text), Forms(DL16, [p.of(sent(p, 64, 64, prepared=True))])) == "b"


def test_a_result_that_no_loop_writes_in_whole_sticks_is_sparse() -> None:
    """70 elements a row, row after row in one dimension."""
    op, p = nest(pointwise("a * 70 + b", "2310")), LayoutPlanner()
    assert cheapest_lane(op, Forms(DL16, [p.of(sent(p, 33, 70))])) is None


def test_the_last_stick_may_be_in_part_where_the_tensor_ends() -> None:
    """70 of 140 columns would leave old elements in a stick: rows go to the lanes, which the host has otherwise."""
    op, p = nest(pointwise("a, b", "33x140")), LayoutPlanner()
    assert cheapest_lane(op, Forms(DL16, [computed(p, 1)])) == "a"


@pytest.mark.parametrize(("placed", "lane"), [(False, "a"), (True, "b")])
def test_few_cores_lay_a_placed_input_out_again(placed: bool, lane: str) -> None:
    """67 rows of 4 sticks, and 256 columns of 2. Row by row, 4 cores read and write 2 * 268 sticks: 134 each.

    Column by column, 32 cores read and write 2 * 512, 32 each, if the input may lie so. Otherwise 4 cores copy it,
    because 67 rows are no whole sticks, and 8 cores lay it out again: 134 and 98 more.
    """
    text = pointwise("a, b", "67x256", "a = 67, b = 256").replace("33x70", "67x256")
    p = LayoutPlanner()
    value = sent(p, 67, 256)
    p.placed |= {value} if placed else set()
    assert cheapest_lane(nest(text), Forms(DL16, [p.of(value)])) == lane


def test_of_two_lanes_with_one_layout_of_the_result_the_cheaper_counts() -> None:
    """1,280 sums of 32 elements, one in a stick: 40,960 sticks read and 1,280 written by 32 cores, 1,320 each.

    With b in the lanes the result is sparse, too, but all is laid out again, 163,840 sticks before 2,560: 5,200 each.
    With a in the lanes it is not: 81,920 sticks before 660, by the 20 cores that share 20 sticks: 4,129 each.
    """
    text = pointwise("a, 0", "1280x1", "a = 1280, b = 32", more='reduce "arith.addf"').replace("33x70", "1280x32")
    p = LayoutPlanner()
    versions = p.of(tensor(1280, 32))
    versions.buffers.append(p.fresh((1280, 32), DL16, UNIT))
    assert cheapest_lane(nest(text), Forms(DL16, [versions])) is None


def test_a_destination_says_which_lane() -> None:
    text = pointwise("a, b", "33x70").replace(" -> [a, b]", " into %d -> [a, b]")
    text = text.replace("%0 = spyre", "%d = spyre.loop.empty : tensor<33x70xf32>\n%0 = spyre")
    op, p = nest(text), LayoutPlanner()
    assert op.dest is not None
    for stick, lane in ((0, "a"), (1, "b"), (UNIT, None)):
        p.versions.clear()
        p.of(op.dest).buffers.append(p.fresh((33, 70), DL16, stick))
        assert lane_for(p, op, Forms(DL16, [p.of(sent(p, 33, 70))])) == lane


@pytest.mark.parametrize(
    ("rows", "body", "lane"),
    [
        (4096, "spyre.loop.yield %e : f32", "a"),
        (4096, "%n = arith.negf %e : f32\nspyre.loop.yield %n : f32", "a"),
    ],
)
def test_a_large_tensor_lies_as_what_follows_reads_it(rows: int, body: str, lane: str) -> None:
    text = pointwise("a, b", f"{rows}x128", f"a = {rows}, b = 128").replace("33x70", f"{rows}x128")
    op, p = nest(text.replace("spyre.loop.yield %e : f32", body)), LayoutPlanner()
    p.later = lambda value, stick: 5000.0 * stick if value is op.result else 0.0
    assert lane_for(p, op, Forms(DL16, [p.of(sent(p, rows, 128, prepared=True))])) == lane


@pytest.mark.parametrize(("read", "lane"), [(True, "b"), (False, "a")])
def test_a_small_tensor_lies_as_what_follows_reads_it_if_that_is_only_the_caller(read: bool, lane: str) -> None:
    text = pointwise("a, b", "64x128", "a = 64, b = 128").replace("33x70", "64x128")
    if read:  # by a second nest, whose layout is not certain yet
        body = text[text.index("%0 = ") : text.index("func.return")]
        second = body.replace("%0 =", "%1 =").replace("%x[", "%0[").replace("%e", "%f")
        text = text.replace("func.return %0", f"{second} func.return %1")
    op, p = ops(passed(text), NestOp)[0], LayoutPlanner()
    p.later = lambda value, stick: 100.0 * stick if value is op.result else 0.0
    assert lane_for(p, op, Forms(DL16, [p.of(sent(p, 64, 128, prepared=True))])) == lane
