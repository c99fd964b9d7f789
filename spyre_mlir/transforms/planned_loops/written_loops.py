"""The loops of a planned function as notes at the kernels that they are around, which stay as they are.

Decision: docs/decisions/0198-a-plan-is-notes-and-then-loops.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import func
from xdsl.ir import Region

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import SpaceAttr
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.kernel_loops.group_loops import PutNest
from spyre_mlir.transforms.kernel_plans.divided_blocks import kernels_in, move_to
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.plan_notes.notes import KernelNote, RunNote, put_loop_notes, put_time
from spyre_mlir.transforms.utils.hints import settle_hints


def note_loops(
    function: func.FuncOp,
    unplanned: Region,
    nests: Sequence[PutNest],
    forms: KernelForms,
    record: PlanRecord,
    spec: SpyreSpec,
) -> None:
    """Replace the body of a planned function by the same without loops, which are noted instead.

    Args:
        function: with loops.
        unplanned: its body as it was before it was planned.
        nests: the loops, in the order in which they were put.
        forms: the kernels before any loop.
        record: what stands for which of them now.
        spec: the machine.
    """
    runs: dict[kernel.KernelOp, list[kernel.KernelOp]] = {}
    for op in function.body.walk():
        if isinstance(op, kernel.KernelOp) and isinstance(before := record.origin(op), kernel.KernelOp):
            runs.setdefault(before, []).append(op)
    settle_hints(kernels_in(unplanned.block), spec)
    times = times_of(record)
    looped = {op: (n, over) for n, nest in enumerate(nests) for op, over in zip(nest.ops, nest.over, strict=True)}
    for op, new in zip(forms.kernels, forms.again(kernels_in(unplanned.block)), strict=True):
        if op in looped:
            new.space = SpaceAttr(tuple(replace(d, split=1) for d in op.space.data))
            number, over = looped[op]
            KernelNote(number, over, tuple(_run(one, times) for one in runs.get(op, ()))).put(new)
        else:
            new.space = op.space
            if op in times:
                put_time(new, times[op])
            if isinstance(new.output.owner, kernel.AllocOp) and _is_in_lx(op):
                move_to(new.output, "lx")
    function.detach_region(function.body)
    function.add_region(unplanned)
    put_loop_notes(function, [nest.note for nest in nests])


def times_of(record: PlanRecord) -> dict[kernel.KernelOp, float]:
    """Return the predicted times of kernels as they were last divided."""
    return {op: us for block in record.blocks for op, us in zip(block.ops, block.plan.times, strict=True)}


def _run(op: kernel.KernelOp, times: Mapping[kernel.KernelOp, float]) -> RunNote:
    return RunNote(op.space_splits(), "lx" if _is_in_lx(op) else "", times.get(op))


def _is_in_lx(op: kernel.KernelOp) -> bool:
    return kernel.device_tensor(op.output).space == "lx"


__all__ = ["note_loops", "times_of"]
