"""Loops of the device: their bounds, trips, and what stands around an op."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.static_loop import (
    LoopBounds,
    ancestor_in,
    enclosing_loops,
    loop_bounds,
    loop_of,
    trips_of,
    verify_loops,
)


def constant(value: int) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(value, IndexType())).result


def loop(
    lower: int | SSAValue, upper: int | SSAValue, step: int | SSAValue, *body: Operation, carried: int = 0
) -> scf.ForOp:
    """A loop with some ops, which carries so many numbers."""
    lb, ub, by = (v if isinstance(v, SSAValue) else constant(v) for v in (lower, upper, step))
    inside = Block([*body], arg_types=[IndexType()] * (1 + carried))
    inside.add_op(scf.YieldOp(*inside.args[1:]))
    return scf.ForOp(lb, ub, by, [constant(0)] * carried, Region(inside))


@pytest.mark.parametrize(
    ("lower", "upper", "step", "values"),
    [(0, 4, 1, [0, 1, 2, 3]), (1, 8, 3, [1, 4, 7]), (-2, 1, 2, [-2, 0]), (0, 1, 5, [0])],
)
def test_bounds_and_trips(lower: int, upper: int, step: int, values: list[int]) -> None:
    bounds = loop_bounds(loop(lower, upper, step))
    assert bounds == LoopBounds(lower, upper, step)
    assert list(bounds.values) == values
    assert bounds.trips == len(values)
    assert hash(bounds) == hash(LoopBounds(lower, upper, step))


def test_the_device_counts_trips_in_sixteen_bits() -> None:
    assert loop_bounds(loop(0, 65_535, 1)).trips == 65_535


ARGUMENT = Block(arg_types=[IndexType()]).args[0]
COMPUTED, SHORT = TestOp(result_types=[IndexType(), i32]).results


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            loop(0, 65_536, 1),
            "the loop from 0 to 65536 by 1 makes 65536 trips, the device counts 1 to 65535; try",
        ),
        (loop(3, 3, 1), "the loop from 3 to 3 by 1 makes 0 trips, the device counts 1 to 65535"),
        (loop(0, 4, 0), "the loop steps by 0, expected at least 1; try counting upwards"),
        (loop(4, 0, -1), "the loop steps by -1, expected at least 1; try counting upwards"),
        (loop(0, 4, 1, carried=2), "the loop carries 2 values from trip to trip, a bundle's loop carries none; try a"),
        (loop(ARGUMENT, 4, 1), "the lower bound of the loop is no constant but comes from a block argument; loops on"),
        (
            loop(0, COMPUTED, 1),
            r"the upper bound of the loop is no constant but comes from test\.op; .*try arith",
        ),
        (loop(0, 4, ARGUMENT), "the step of the loop is no constant but comes from a block argument"),
        (loop(0, 4, SHORT), "the step of the loop has type i32, expected index"),
        (loop(SHORT, 4, 1), "the lower bound of the loop has type i32, expected index"),
    ],
)
def test_loops_that_the_device_cannot_run(given: scf.ForOp, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        loop_bounds(given)
    with pytest.raises(VerifyException, match=said):
        verify_loops(given.body.block.ops.first or given)


def test_loop_of_an_induction_variable() -> None:
    around = loop(0, 4, 1, carried=1)
    assert loop_of(around.body.block.args[0]) is around
    assert loop_of(around.body.block.args[1]) is None
    assert loop_of(ARGUMENT) is None
    assert loop_of(COMPUTED) is None
    assert loop_of(FuncOp("f", ([IndexType()], [])).args[0]) is None


def nested() -> tuple[FuncOp, scf.ForOp, TestOp, scf.ForOp, TestOp]:
    """A function with a loop of 3 trips, in it an op that holds a loop of 5 trips around an op."""
    innermost = TestOp()
    inner = loop(0, 5, 1, innermost)
    holder = TestOp(regions=[Region(Block([inner]))])
    outer = loop(0, 6, 2, holder)
    return FuncOp("f", ([], []), Region(Block([outer]))), outer, holder, inner, innermost


def test_loops_around_an_op() -> None:
    function, outer, holder, inner, innermost = nested()
    assert list(enclosing_loops(innermost)) == [inner, outer]
    assert list(enclosing_loops(inner)) == [outer]
    assert list(enclosing_loops(outer)) == []
    assert list(enclosing_loops(innermost, outer.body.block)) == [inner]
    assert list(enclosing_loops(innermost, inner.body.block)) == []
    assert list(enclosing_loops(holder, function.body.block)) == [outer]
    verify_loops(innermost)


def test_how_often_an_op_runs() -> None:
    _, outer, _, inner, innermost = nested()
    assert trips_of(innermost) == 15
    assert trips_of(innermost, outer.body.block) == 5
    assert trips_of(inner) == 3
    assert trips_of(outer) == 1


def test_the_op_of_a_block_that_holds_another() -> None:
    function, outer, holder, _, innermost = nested()
    assert ancestor_in(function.body.block, innermost) is outer
    assert ancestor_in(outer.body.block, innermost) is holder
    assert ancestor_in(outer.body.block, holder) is holder
