"""Groups of kernels as loops are tried around them: where they may end, and what a trip holds."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.row_groups import grow
from spyre_mlir.transforms.kernel_loops.trials import CLEAR_GAIN, InnerLoop, Trial, clear_gain_us, cuts
from tests.unit.transforms.kernel_loops.test_row_blocks import product
from tests.unit.transforms.kernel_loops.test_running_sums import group_of, products
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def test_what_a_trial_tells() -> None:
    first, *_ = ops(passed(softmax(8192, 1024), "divide-work"), KernelOp)
    group = grow(first, [])[0]
    told = Trial(group, (TripSpan.of_all(4),), InnerLoop(2, ["n"]), usual_us=20.0, least_us=10.0).told(12.0, 19.0)
    assert told.loops == ((group.loops[0], 4), ("n", 2))
    assert (told.us, told.most_us, told.least_us) == (12.0, 19.0, 10.0)
    spans = TripSpan(3, 32, 100), TripSpan(1, 4, 100, start=96)
    unequal, copied = (Trial(group, (spans[0], replace(spans[1], copies=n)), None, 20.0, 10.0).told() for n in (1, 8))
    assert unequal.loops == ((group.loops[0], 3), (f"{group.loops[0]} from piece 96", 1))
    assert copied.loops[1] == (f"{group.loops[0]} from piece 96, 8 copies", 1)
    assert clear_gain_us(told.usual_us) == CLEAR_GAIN * 20.0


def test_every_trip_launches_every_kernel() -> None:
    first, *others = ops(passed(softmax(8192, 1024), "divide-work"), KernelOp)
    group = grow(first, others)[0].first(3)
    inside = Trial(group, (TripSpan.of_all(4),), InnerLoop(2, ["n"]), usual_us=20.0, least_us=10.0)
    unequal = Trial(group, (TripSpan(3, 32, 100), TripSpan(1, 4, 100, start=96)), None, 20.0, 10.0)
    assert (inside.launches, unequal.launches) == (3 * 4 * 2, 3 * (3 + 1))


def test_trials_of_equal_kernels_are_equal() -> None:
    """Of two softmax programs alike; not of one with other sizes, nor of one whose third kernel reads the input."""

    def identity(module: ModuleOp, trips: int = 4, count: int = 3) -> object:
        first, *others = ops(module, KernelOp)
        group = grow(first, others)[0].first(count)
        return Trial(group, (TripSpan.of_all(trips),), None, 20.0, 10.0).identity(lambda _: False)

    plain = identity(passed(softmax(8192, 1024)))
    assert plain == identity(passed(softmax(8192, 1024)))
    assert hash(plain) == hash(identity(passed(softmax(8192, 1024))))
    assert plain != identity(passed(softmax(8192, 1024)), trips=8)
    assert plain != identity(passed(softmax(8192, 1024)), count=2)
    assert plain != identity(passed(softmax(4096, 1024)))
    other = passed(softmax(8192, 1024))
    exp = ops(other, KernelOp)[2]
    exp.operands[0] = ops(other, KernelOp)[0].inputs[0]
    assert plain != identity(other)


def test_a_group_may_end_before_its_sum() -> None:
    group = group_of(passed(products()))
    assert [op.function_name for op in group.ops] == ["batchmatmul", "exp", "sum"]
    assert cuts(group) == [2, 3]


def test_a_group_without_products_is_not_cut() -> None:
    first, *others = ops(passed(softmax(8192, 1024), "divide-work"), KernelOp)
    assert cuts(next(g for g in grow(first, others) if len(g.ops) == 5)) == [5]


def test_a_group_may_end_before_a_weight_of_few_bits_is_widened() -> None:
    ops_found = ops(product(1024), KernelOp)
    convert, multiplied, exp = ops_found
    group = next(g for g in grow(convert, ops_found[1:]) if g.loops == ["d0", "n", "n"])
    behind = group.first(3)
    behind.add(convert, "d0", group.rows[0])
    assert cuts(behind) == [2, 3, 4]
    assert [op.function_name for op in (multiplied, exp)] == ["batchmatmul", "exp"]
