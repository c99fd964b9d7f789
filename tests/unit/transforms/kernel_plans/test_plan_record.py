"""The record of the planner: kernels that moved into loops, twice if there are two loops."""

from __future__ import annotations

from xdsl.dialects.test import TestOp

from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord, TriedLoop


def test_kernels_in_two_loops_lead_to_the_kernel_before_any() -> None:
    first, outer, inner, other = TestOp(), TestOp(), TestOp(), TestOp()
    record = PlanRecord()
    record.moved([first], [outer])
    record.moved([outer], [inner])
    assert record.origin(inner) is first
    assert record.origin(other) is other
    record.loops.append(TriedLoop((first,), (("m", 4), ("n", 2)), 10.0, 5.0))
    assert record.tried(record.origin(inner)) == record.loops
    assert record.tried(other) == [] and record.block(inner) is None


def test_a_kernel_in_loops_one_after_the_other_is_in_each_of_them() -> None:
    first, many, few = TestOp(), TestOp(), TestOp()
    record = PlanRecord()
    record.moved([first, first], [many, few])
    assert record.origin(many) is first and record.origin(few) is first
