"""Loops that are built to be priced, and those that are kept."""

from __future__ import annotations

from math import inf

import pytest
from xdsl.dialects.scf import ForOp

from spyre_mlir.dialects.spyre.hints import Hint, HintError
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.group_loops import GroupLoops
from spyre_mlir.transforms.kernel_loops.trials import Trial
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from tests.unit.transforms.kernel_loops.test_tiled_body import rows_of
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def trial_of(module: object, trips: int) -> Trial:
    return Trial(rows_of(module), (TripSpan.of_all(trips),), None, 0.0, 0.0)


def test_a_price_leaves_the_program_alone_and_grows_with_trips() -> None:
    module = passed(softmax(512, 1024))
    before, builder = str(module), GroupLoops(KernelChoices(SPYRE), PlanRecord())
    few, many = (builder.us(trial_of(module, trips), inf) for trips in (2, 64))
    assert few is not None and many is not None and few < many
    assert builder.us(trial_of(module, 2), few / 2) is None  # slower than the most that was asked for
    assert str(module) == before


def test_a_loop_that_is_kept_is_divided_and_recorded() -> None:
    module = passed(softmax(512, 1024))
    builder = GroupLoops(KernelChoices(SPYRE), PlanRecord())
    kernels = ops(module, KernelOp)
    builder.put(trial_of(module, 4), 1.5, "to try it")
    (loop,) = ops(module, ForOp)
    assert all(any(d.split > 1 for d in op.space.data) for op in ops(loop, KernelOp))
    assert builder.record.taken == dict.fromkeys(kernels, ((("m", 4),), 5))
    assert [builder.record.origin(op) for op in ops(loop, KernelOp)] == kernels


def test_what_keeps_kernels_from_a_loop_is_an_error_where_that_is_asked() -> None:
    module = passed(softmax(512, 1024))
    Hint({"m": 16}).put(ops(module, KernelOp)[0])
    builder = GroupLoops(KernelChoices(SPYRE), PlanRecord())
    assert builder.us(trial_of(module, 64), inf) is None
    with pytest.raises(HintError, match="divides m over 16: equal slices of its 8 elements"):
        builder.check(trial_of(module, 64))
