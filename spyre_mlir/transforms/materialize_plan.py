"""Pass `materialize-plan`: puts the loops that a plan notes around their kernels, divided and placed as it notes.

```mlir
spyre.kernel.compute "exp" [m = 64, n = 128] ins(%0[m, n] : …) outs(%1[m, n] : …) attributes {spyre.plan = {
    loop = 0, over = ["m"], runs = [{division = #spyre.division<m over 16, n>}]}}
```
becomes, with `spyre.loops = [{trips = [4]}]` at the function:
```mlir
scf.for %i = %c0 to %c4 step %c1 {
  %2 = spyre.kernel.tile %0 dim 0 at %i * 16 : …
  %3 = spyre.kernel.tile %1 dim 0 at %i * 16 : …
  spyre.kernel.compute "exp" [m = 16 over 16, n = 128] ins(%2[m, n] : …) outs(%3[m, n] : …)
}
```
`plan` writes these notes, and a reader may change them: trips, which kernels are in a loop, how they are divided there,
and where a trip keeps what it makes. Loops, tiles, small buffers, and the kernels around a sum that grows trip by trip
come from here alone.

Decision: docs/decisions/0198-a-plan-is-notes-and-then-loops.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import func

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.plan_notes.notes import (
    LOOPS,
    PLAN,
    TIME,
    KernelNote,
    LoopNote,
    PlanError,
    has_notes,
    kernel_note,
    loop_notes,
)
from spyre_mlir.transforms.planned_loops.noted_loops import NotedLoop, divide_as_noted
from spyre_mlir.transforms.utils.function_pass import FunctionPass


@dataclass(frozen=True)
class MaterializePlanPass(FunctionPass):
    """Puts kernels into the loops that they note."""

    name = "materialize-plan"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Put the loops of a function, and drop the times of kernels."""
        for op in function.body.walk():
            op.attributes.pop(TIME, None)
        if not has_notes(function):
            return
        noted = dict(_noted(function))
        record = PlanRecord()
        for loop in _loops(function, noted, loop_notes(function)):
            loop.put(spec, record)
        made: dict[kernel.KernelOp, list[kernel.KernelOp]] = {op: [] for op in noted}
        for op in function.body.walk():
            if isinstance(op, kernel.KernelOp) and PLAN in op.attributes:
                before = record.origin(op)
                assert isinstance(before, kernel.KernelOp)
                made[before].append(op)
                del op.attributes[PLAN]
        for op, note in noted.items():
            divide_as_noted(op, note, made[op])
        del function.attributes[LOOPS]


def _noted(function: func.FuncOp) -> Iterator[tuple[kernel.KernelOp, KernelNote]]:
    """The kernels with a note, in order."""
    for op in function.body.walk():
        if PLAN not in op.attributes:
            continue
        where = placed(op.name, op.location)
        if not isinstance(op, kernel.KernelOp):
            raise PlanError(f"{PLAN} is a note at a kernel, and this is none", where=where, hint="take it away")
        if op.parent_block() is not function.body.block:
            message = f"{op.function_name} notes a loop and is in one already"
            raise PlanError(message, where=where, hint="take away the note, or the loop that the text has")
        if (note := kernel_note(op)) is not None:
            yield op, note


def _loops(function: func.FuncOp, noted: dict[kernel.KernelOp, KernelNote], loops: list[LoopNote]) -> list[NotedLoop]:
    """The loops in the order of the function's note, each with its kernels."""
    found = [NotedLoop(note, []) for note in loops]
    for op, note in noted.items():
        if note.loop >= len(loops):
            message = f"{op.function_name} notes loop {note.loop}, and the function has {len(loops)}"
            hint = f"list its trips in {LOOPS} of the function, or take {PLAN} away"
            raise PlanError(message, where=placed(op.function_name, op.location), hint=hint)
        found[note.loop].kernels.append((op, note))
    for number, loop in enumerate(found):
        if not loop.kernels:
            message, where = f"no kernel notes loop {number}", placed(function.sym_name.data, function.location)
            raise PlanError(message, where=where, hint=f"number the loops of {PLAN} anew, or let a kernel note it")
    return found


__all__ = ["MaterializePlanPass"]
