"""Loops that a plan put, as notes at the kernels as they were."""

from __future__ import annotations

from typing import Any, cast

import pytest
from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.materialize_plan import MaterializePlanPass
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.transforms.plan_notes.notes import TIME, LoopNote, kernel_note, loop_notes
from spyre_mlir.universe import make_context
from tests.unit.transforms.kernel_loops.test_running_sums import products
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def test_kernels_stay_whole_and_say_how_they_run() -> None:
    """A softmax of 65,536 rows has a loop of four trips; kernels around it would say their divisions themselves."""
    before, module = passed(softmax(65_536, 1024)), passed(softmax(65_536, 1024), "plan")
    assert loop_notes(ops(module, FuncOp)[0]) == [LoopNote((TripSpan.of_all(4),))]
    assert [op.space for op in ops(module, KernelOp)] == [op.space for op in ops(before, KernelOp)]
    assert [op.result.type for op in ops(module, AllocOp)] == [op.result.type for op in ops(before, AllocOp)]
    notes = [kernel_note(op) for op in ops(module, KernelOp)]
    assert [(n.loop, n.over, n.runs and dict(n.runs[0].splits)) for n in notes if n is not None] == [
        (0, ("m",), {"m": 32, "n": 1})
    ] * 5


def test_a_growing_sum_says_how_all_its_kernels_run() -> None:
    """The total is set to 0, added to and copied; it stays in the scratchpads, and the result is no trip's."""
    module = passed(products(8, (512, 1024, 1024)), "plan")
    note = kernel_note(ops(module, KernelOp)[-1])
    assert note is not None and note.runs is not None and note.over == ("r",)
    assert [run.place for run in note.runs] == ["lx", "lx", ""]
    assert len({tuple(run.splits.items()) for run in note.runs}) == 1


def test_kernels_outside_of_loops_have_divisions_in_their_text() -> None:
    lines = [
        line + " attributes {spyre.hint = {tile = {m = 8}}}" if '"exp"' in line else line
        for line in softmax(64, 128).splitlines()
    ]
    module = passed("\n".join(lines), "plan")
    found = {op.function_name: op for op in ops(module, KernelOp)}
    assert kernel_note(found["max"]) is None and found["max"].space_splits()["m"] == 32
    assert isinstance(us := found["max"].attributes[TIME], FloatAttr) and us.value.data > 0
    assert set(found["exp"].space_splits().values()) == {1} and kernel_note(found["exp"]) is not None
    (note,) = loop_notes(ops(module, FuncOp)[0])
    assert note.spans == (TripSpan.of_all(8),)


def test_kernels_say_their_times_which_add_up_to_that_of_the_function() -> None:
    module = passed(softmax(512, 1024))
    (us,) = PlanPass().recorded(make_context(), module.clone()).us
    PlanPass().apply(make_context(), module)
    times = [op.attributes[TIME] for op in ops(module, KernelOp)]
    found = [cast("FloatAttr[Any]", time).value.data for time in times]
    assert len(found) == 5 and sum(found) == pytest.approx(us, rel=1e-3)
    MaterializePlanPass().apply(make_context(), module)
    assert not any(TIME in op.attributes for op in module.walk())
