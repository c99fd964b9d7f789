"""The first kernels of a group: bytes counted by hand, and the same as a group of so many kernels says of itself."""

from __future__ import annotations

from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.transforms.kernel_loops.group_prefixes import GroupPrefix
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow
from spyre_mlir.transforms.kernel_loops.time_floors import TimeFloors
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from tests.unit.transforms.kernel_loops.test_row_groups import BIAS, BOTH, BYTES, EXP, MAX, SUB, grown, kernel
from tests.unit.transforms.kernel_loops.test_running_sums import group_of, products
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def prefix_of(group: RowGroup, count: int | None = None) -> GroupPrefix:
    found = GroupPrefix(group, TimeFloors(KernelChoices(SPYRE)))
    found.extend(len(group.ops) if count is None else count)
    return found


def hints(values: set[SSAValue]) -> set[str | None]:
    return {value.name_hint for value in values}


def softmax_group() -> RowGroup:
    first, *others = ops(passed(softmax(8192, 1024), "divide-work"), KernelOp)
    return next(g for g in grow(first, others) if len(g.ops) == 5)


def test_bytes_of_buffers_in_use_at_one_time() -> None:
    # t1 and s0 live from the maximum to the difference, t2 from there on: at the difference all three are in use.
    assert prefix_of(grown(EXP, MAX, SUB, BIAS)["m"]).held_bytes() == 2 * BYTES["t"] + BYTES["s"]
    # A chain holds an operand and a result, however long it is; the last result is the host's.
    neg = kernel("neg", BOTH, "t1[m, n]", "t2[m, n]")
    back = kernel("neg", BOTH, "t2[m, n]", "t1[m, n]")
    last = kernel("exp", BOTH, "t1[m, n]", "t3[m, n]")
    assert prefix_of(grown(EXP, last)["m"]).held_bytes() == BYTES["t"]
    assert prefix_of(grown(EXP, neg, back, last)["m"]).held_bytes() == 2 * BYTES["t"]
    assert prefix_of(grown(kernel("exp", BOTH, "t0[m, n]", "t3[m, n]"))["m"]).held_bytes() == 0


def test_buffers_that_later_kernels_read_come_in_with_them() -> None:
    """The third kernel reads what the first two write; t2 is read by the last."""
    prefix = prefix_of(grown(EXP, MAX, SUB, BIAS)["m"], 2)
    assert (hints(prefix.internal), prefix.held_bytes()) == (set(), 0)
    prefix.extend(3)
    assert (hints(prefix.internal), prefix.held_bytes()) == ({"t1", "s0"}, BYTES["t"] + BYTES["s"])
    prefix.extend(4)
    assert hints(prefix.internal) == {"t1", "s0", "t2"}


def test_what_a_trip_of_a_softmax_may_hold() -> None:
    """Its input has two readers, its result goes outside; everything between is the group's own."""
    prefix = prefix_of(softmax_group(), 1)
    assert prefix.held == [set()]  # the input has one reader so far, and the maximum none
    prefix.extend(2)
    assert prefix.held == [{0, 1}, {0, 1}]  # only the second reads the maximum; others read the difference
    prefix.extend(5)
    assert prefix.held == [{0, 1}, {0, 1, 2}, {0, 1}, {0, 1}, {0, 1}]


def test_a_total_may_stay_in_the_scratchpads() -> None:
    assert prefix_of(group_of(passed(products()))).held == [{2}, {0, 1}, {0, 1}]


def test_what_is_carried_along_is_that_of_the_kernels_alone() -> None:
    group = softmax_group()
    along = GroupPrefix(group, TimeFloors(KernelChoices(SPYRE)))
    for count in (1, 2, 4, 5):
        along.extend(count)
        alone = prefix_of(group.first(count))
        assert (along.internal, along.pieces) == (alone.internal, group.first(count).pieces)
        assert (along.held, along.floor_us()) == (alone.held, alone.floor_us())


def test_other_loops_are_those_of_all_kernels() -> None:
    """The first two are pointwise, so both loops go around them; the maximum folds n."""
    neg = kernel("neg", BOTH, "t1[m, n]", "t2[m, n]")
    group = grown(EXP, neg, kernel("max", BOTH, "t2[m, n]", "s0[m]"))["m"]
    assert list(prefix_of(group, 2).inner_loops()) == [(2, ["n", "n"])]  # columns by the stick
    assert list(prefix_of(group).inner_loops()) == []
