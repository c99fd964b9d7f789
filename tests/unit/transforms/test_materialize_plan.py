"""Plans as notes, printed and read again: the loops that the planner had in mind come of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.transforms.materialize_plan import MaterializePlanPass
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.transforms.plan_notes.notes import LOOPS, PLAN, TIME, PlanError
from spyre_mlir.universe import make_context
from tests.paths import TESTS
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.plan_notes.texts import noted
from tests.unit.transforms.test_place_lx import softmax

LIT = TESTS / "lit" / "transforms"
TO_KERNEL = "convert-spyre-loop-to-spyre-kernel"


def unplanned(path: Path) -> ModuleOp:
    module = parse_module(path.read_text(encoding="utf-8"), make_context())
    if not ops(module, KernelOp):
        get_all_passes()[TO_KERNEL]()().apply(make_context(), module)
    return module


@pytest.mark.parametrize(
    "name", ["plan", "plan_sums", "plan_experts", "plan_hint_tile", "narrow_weights", "narrow_weights_large"]
)
def test_a_printed_plan_becomes_the_loops_that_were_planned(name: str) -> None:
    context, module = make_context(), unplanned(LIT / f"{name}.mlir")
    intended, planned = module.clone(), module.clone()
    PlanPass().recorded(context, intended)
    PlanPass().apply(context, planned)
    assert not ops(planned, ForOp)
    again = parse_module(module_text(planned), context)
    MaterializePlanPass().apply(context, again)
    assert module_text(again) == module_text(intended)
    assert any(op.parent_op() is not None for op in ops(again, ForOp)) == bool(ops(intended, ForOp))


def test_a_plan_that_is_planned_again_stays_and_its_loops_leave_no_notes() -> None:
    planned = passed(softmax(65_536, 1024), "plan")
    text = module_text(planned)
    assert LOOPS in text and PLAN in text
    PlanPass().apply(make_context(), planned)
    assert module_text(planned) == text
    MaterializePlanPass().apply(make_context(), planned)
    assert not any(note in module_text(planned) for note in (LOOPS, PLAN, TIME))
    looped = module_text(planned)
    MaterializePlanPass().apply(make_context(), planned)
    assert module_text(planned) == looped


def test_a_note_at_something_else_than_a_kernel_outside_of_loops_is_refused() -> None:
    text = noted(softmax(64, 128), "{trips = [2]}", ("exp", 'loop = 0, over = ["m"]'))
    moved = text.replace("spyre.kernel.alloc :", 'spyre.kernel.alloc {spyre.plan = {loop = 0, over = ["m"]}} :', 1)
    with pytest.raises(PlanError, match="is a note at a kernel, and this is none"):
        passed(moved, "materialize-plan")
    module = passed(text)
    note = ops(module, KernelOp)[2].attributes[PLAN]
    MaterializePlanPass().apply(make_context(), module)
    ops(ops(module, ForOp)[0], KernelOp)[0].attributes[PLAN] = note
    with pytest.raises(PlanError, match="exp notes a loop and is in one already"):
        MaterializePlanPass().apply(make_context(), module)
