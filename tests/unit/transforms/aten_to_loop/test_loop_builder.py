"""Nests as the builder makes them: their loops by hand, what they compute against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f16, f32, f64, i32, i64

from spyre_mlir.dialects.spyre.loop import LoopConstantOp, NestOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.index_views import IndexView
from spyre_mlir.ops.native import pointwise, reductions
from spyre_mlir.transforms.aten_to_loop.loop_builder import stems
from spyre_mlir.transforms.aten_to_loop.nests import TensorView
from tests.unit.machine.modules import numbers
from tests.unit.transforms.aten_to_loop.building import Built


def test_dimensions_are_named_by_their_place() -> None:
    assert stems(3) == ["d0", "d1", "d2"]
    assert stems(0) == []


@pytest.mark.parametrize(
    ("number", "held"),
    [
        (2.5, FloatAttr(2.5, f64)),
        (3, FloatAttr(3.0, f64)),
        (2**53, FloatAttr(2.0**53, f64)),
        (2**53 + 1, IntegerAttr(2**53 + 1, i64)),  # no double precision number
        (True, FloatAttr(1.0, f64)),
    ],
)
def test_numbers_become_tensors_of_rank_0(number: float, held: object) -> None:
    built = Built()
    reading = built.b.reading(number, f32)
    (op,) = built.made
    assert isinstance(op, LoopConstantOp)
    assert (op.value, op.result.type, reading.shape, reading.base) == (held, TensorType(f32, []), (), op.result)


def test_values_are_read_as_they_are_known() -> None:
    built = Built((2, 3))
    value = built.block.args[0]
    built.b.readings[value] = known = TensorView(value, IndexView.identity((2, 3)).transpose(0, 1))
    assert built.b.reading(value, f16) is known
    assert built.made == []


def test_a_tensor_is_converted_once_for_all_views_of_it() -> None:
    built = Built(((2, 3), i32))
    assert built.b.converted(built.arg(), i32).base is built.arg().base
    one = built.b.converted(built.arg(), f32)
    turned = TensorView(built.arg().base, built.arg().view.transpose(0, 1))
    two = built.b.converted(turned, f32)
    assert two.base is one.base and two.shape == (3, 2)
    assert built.b.conversions == [one.base] and built.loops == [{"d0": 2, "d1": 3}]
    assert built.b.converted(turned, f16).base is not one.base
    assert len(built.b.conversions) == 2
    x = np.arange(6).reshape(2, 3)
    assert np.array_equal(built.run(two, x), x.T)


def test_a_copy_has_the_order_of_its_reading() -> None:
    built, x = Built((2, 3)), numbers(2, 3)
    turned = TensorView(built.arg().base, built.arg().view.transpose(0, 1))
    made = built.b.copy(turned)
    assert made.is_base and made.shape == (3, 2) and built.loops == [{"d0": 3, "d1": 2}]
    assert np.array_equal(built.run(made, x), x.T)


def test_a_copy_may_have_another_shape() -> None:
    built, x = Built((2, 3)), numbers(2, 3)
    turned = TensorView(built.arg().base, built.arg().view.transpose(0, 1))
    made = built.b.copy(turned, (6,))
    assert made.is_base and made.shape == (6,) and built.loops == [{"d0": 3, "d1": 2}]
    assert np.array_equal(built.run(made, x), x.T.reshape(6))


def test_operands_are_broadcast_to_the_result() -> None:
    built, x, y = Built((2, 1, 4), (3, 1)), numbers(2, 1, 4), numbers(3, 1, seed=1)
    made = built.b.pointwise(pointwise.sub, [built.arg(0), built.arg(1)], TensorType(f32, [2, 3, 4]))
    assert built.loops == [{"d0": 2, "d1": 3, "d2": 4}]
    assert np.allclose(built.run(made, x, y), x - y)


def test_arguments_that_are_numbers_reach_the_body() -> None:
    built, x = Built((5,)), numbers(5)
    made = built.b.pointwise(pointwise.clamp, [built.arg()], TensorType(f32, [5]), numbers={"min": -0.5, "max": 0.25})
    assert np.allclose(built.run(made, x), x.clip(-0.5, 0.25))


def test_six_loops_stay_and_more_are_joined() -> None:
    for shape, wanted in (((2, 3, 2, 3, 2, 3), [2, 3, 2, 3, 2, 3]), ((2, 3, 2, 3, 2, 3, 2), [432])):
        built, x = Built((int(np.prod(shape)),)), numbers(int(np.prod(shape)))
        cut = TensorView(built.arg().base, built.arg().view.reshape(shape))
        made = built.b.copy(cut, (x.size,))
        assert [list(loops.values()) for loops in built.loops] == [wanted]
        assert np.array_equal(built.run(made, x), x)


def test_six_loops_after_joining_are_few_enough() -> None:
    """All dimensions reversed but the first two, which still walk together: six runs."""
    shape = (2, 3, 2, 3, 2, 3, 2)
    built, x = Built((432,)), numbers(432)
    cut = TensorView(built.arg().base, built.arg().view.reshape(shape).permute((6, 5, 4, 3, 2, 0, 1)))
    made = built.b.copy(cut, (432,))
    assert [list(loops.values()) for loops in built.loops] == [[2, 3, 2, 3, 2, 6]]
    assert np.array_equal(built.run(made, x), x.reshape(shape).transpose(6, 5, 4, 3, 2, 0, 1).reshape(-1))


TURNED = (2, 3, 2, 3, 2, 3, 2, 3)


def turned(built: Built, number: int = 0) -> TensorView:
    """A tensor of 1296 elements cut in eight, in reverse order."""
    base = built.arg(number)
    return TensorView(base.base, base.view.reshape(TURNED).permute((7, 6, 5, 4, 3, 2, 1, 0)))


# The last four of the eight cuts come to the front, two at a time: 76543210 then has five runs in 32104567.
STAGES = [[36, 36], [3, 2, 216], [3, 2, 6, 36], [3, 2, 3, 2, 36]]


def test_a_shuffle_of_many_loops_takes_several_nests() -> None:
    built, x = Built((36, 36)), numbers(36, 36)
    made = built.b.copy(turned(built), (1296,))
    assert [list(loops.values()) for loops in built.loops] == STAGES
    assert np.array_equal(built.run(made, x), x.reshape(TURNED).transpose(7, 6, 5, 4, 3, 2, 1, 0).reshape(-1))


@pytest.mark.parametrize("first", [True, False])
def test_operands_of_other_orders_are_copied_until_the_loops_are_few(first: bool) -> None:
    built, x, y = Built((1296,), (36, 36)), numbers(1296), numbers(36, 36, seed=1)
    flat = turned(built)
    operands = [TensorView(flat.base, flat.view.reshape((36, 36))), built.arg(1)]
    made = built.b.pointwise(pointwise.sub, operands if first else operands[::-1], TensorType(f32, [36, 36]))
    assert max(map(len, built.loops)) <= 6 and list(built.loops[-1].values()) == [36, 36]
    wanted = x.reshape(TURNED).transpose(7, 6, 5, 4, 3, 2, 1, 0).reshape(36, 36) - y
    assert np.allclose(built.run(made, x, y), wanted if first else -wanted)


def test_a_part_in_many_loops_stays_as_it_is() -> None:
    """No mere change of order: whether eight loops are too many shows when the kernel is written."""
    built, x = Built((36, 36)), numbers(36, 36)
    part = TensorView(turned(built).base, turned(built).view.slice(0, 0, 2))
    made = built.b.copy(part)
    assert [list(loops.values()) for loops in built.loops] == [[2, 2, 3, 2, 3, 2, 3, 2]]
    assert np.array_equal(built.run(made, x), x.reshape(TURNED).transpose(7, 6, 5, 4, 3, 2, 1, 0)[:2])


def test_a_reduction_folds_one_dimension_and_keeps_it() -> None:
    built, x = Built((2, 3, 4)), numbers(2, 3, 4)
    made = built.b.reduced(built.arg(), 1, reductions.sum)
    assert made.shape == (2, 1, 4) and built.loops == [{"d0": 2, "r": 3, "d2": 4}]
    assert np.allclose(built.run(made, x), x.sum(1, keepdims=True))


def test_one_element_needs_no_folding() -> None:
    built = Built((2, 1, 4))
    assert built.b.reduced(built.arg(), 1, reductions.amax) == built.arg()
    assert built.made == []


def test_repeated_rows_are_folded_once_and_repeated_then() -> None:
    built, x = Built((1, 4, 1)), numbers(1, 4, 1)
    wide = TensorView(built.arg().base, built.arg().view.expand((3, 4, 5)))
    made = built.b.reduced(wide, 1, reductions.amax)
    assert built.loops == [{"r": 4}] and made.shape == (3, 1, 5)
    assert np.allclose(built.run(made, x), np.broadcast_to(x.max(), (3, 1, 5)))


def test_repeated_elements_count_as_often_as_they_are_there() -> None:
    built, x = Built((4, 1)), numbers(4, 1)
    wide = TensorView(built.arg().base, built.arg().view.expand((4, 3)))
    made = built.b.reduced(wide, 1, reductions.sum)
    assert built.loops == [{"d0": 4, "d1": 3}, {"d0": 4, "r": 3}]
    assert np.allclose(built.run(made, x), 3 * x)


def test_a_dimension_of_several_loops_is_copied_before_it_is_folded() -> None:
    built, x = Built((2, 3, 4)), numbers(2, 3, 4)
    view = built.arg().view.permute((1, 0, 2)).reshape((3, 8))
    made = built.b.reduced(TensorView(built.arg().base, view), 1, reductions.sum)
    assert len(built.loops) == 2 and built.loops[1] == {"d0": 3, "r": 8}
    assert np.allclose(built.run(made, x), x.sum((0, 2))[:, None])


def test_a_reading_that_does_not_fit_the_others_is_copied() -> None:
    built, x, y = Built((2, 3), (3, 2)), numbers(2, 3), numbers(3, 2, seed=1)
    flat = [TensorView(a.base, a.view.transpose(0, 1).reshape((6,))) for a in (built.arg(0), built.arg(1))]
    loops, out, readings = built.b.align(flat, IndexView.identity((6,)), ["d0"])
    assert len(built.loops) == 1 and readings[0].is_base and readings[1] is flat[1]
    assert loops.extents == ((2, 3),) and len(loops.maps) == 2 and len(out) == 1
    made = built.b.pointwise(pointwise.sub, flat, TensorType(f32, [6]))
    assert np.allclose(built.run(made, x, y), x.T.reshape(6) - y.T.reshape(6))


def test_readings_without_common_loops_are_refused() -> None:
    """Four of every five, cut in two: steps 5, 2 and 1. No dimension of the reading is cut, so no copy would help."""
    built = Built((20,))
    part = TensorView(built.arg().base, built.arg().view.reshape((4, 5)).slice(1, 0, 4))
    with pytest.raises(UnsupportedError, match=r"no common loops for shapes \[\(4, 4\)\]: a cut .* do not divide"):
        built.b.align([part], IndexView.identity((4, 2, 2)).reshape((4, 4)), ["d0", "d1"])
    assert built.made == []


def test_nests_take_the_element_type_of_their_result() -> None:
    built = Built((2, 3))
    built.b.pointwise(None, [built.arg()], TensorType(f16, [2, 3]))
    (op,) = built.made
    assert isinstance(op, NestOp) and op.result.type == TensorType(f16, [2, 3])


_CUT = {"d1_0": 6, "d1_1": 2}


@pytest.mark.parametrize(("rows", "loops"), [(64, [_CUT, {"d0": 64, "d1": 12}]), (63, [{"d0": 63, **_CUT}])])
def test_a_view_that_cuts_a_dimension_is_copied_if_a_nest_repeats_it_often(rows: int, loops: object) -> None:
    """A row of 12 elements that lie in two columns, added to many rows."""
    built = Built((rows, 12), (2, 6))
    x, columns = built.arg(0), built.arg(1)
    row = TensorView(columns.base, columns.view.transpose(0, 1).reshape((1, 12)))
    made = built.b.pointwise(pointwise.add, [x, row], TensorType(f32, (rows, 12)))
    assert built.loops == loops
    many, few = np.ones((rows, 12), np.float32), np.arange(12, dtype=np.float32).reshape(2, 6)
    assert np.array_equal(built.run(made, many, few), many + few.T.reshape(1, 12))
