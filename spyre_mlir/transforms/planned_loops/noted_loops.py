"""Loops that notes ask for, around the kernels with the notes: checked, put, and their kernels divided as noted.

Decision: docs/decisions/0198-a-plan-is-notes-and-then-loops.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.hinted_loops import MOST_SHOWN
from spyre_mlir.transforms.kernel_loops.repeated_weights import shared_rows
from spyre_mlir.transforms.kernel_loops.row_groups import PASSED, RowGroup, ops_from
from spyre_mlir.transforms.kernel_loops.row_loops import row_loops
from spyre_mlir.transforms.kernel_loops.running_sums import most_trips
from spyre_mlir.transforms.kernel_loops.tiled_body import put_around
from spyre_mlir.transforms.kernel_plans.divided_blocks import move_to
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.plan_notes.notes import KernelNote, LoopNote, PlanError
from spyre_mlir.transforms.utils.kernels.loops import divided

OPEN = "or leave runs out of spyre.plan, and divide-work divides the kernel"


@dataclass
class NotedLoop:
    """A loop and the kernels that note it.

    Attributes:
        note: of the function about the loop.
        kernels: in the order of the block, each with its note.
    """

    note: LoopNote
    kernels: list[tuple[kernel.KernelOp, KernelNote]]

    def put(self, spec: SpyreSpec, record: PlanRecord) -> None:
        """Put the loop around the kernels.

        Args:
            spec: the machine.
            record: is told what stands for which kernel.

        Raises:
            PlanError: they cannot be in such a loop.
        """
        group = self._group()
        self._check_trips(group, spec)
        inner = self._inner()
        bodies = put_around(group, self.note.spans, record.moved)
        for body in bodies if inner else ():
            within = body.within(inner)
            if within is None or list(within.loops) != [inner[number] for number in body.sources]:
                raise self._refused(0, f"the kernels share no loop inside of it over {', '.join(dict.fromkeys(inner))}")
            self._check_pieces(within, self.note.inner, body.sources)
            put_around(within, [TripSpan.of_all(self.note.inner)], record.moved)

    def _group(self) -> RowGroup:
        """The kernels by the loop that each notes, which they share."""
        group, wanted = RowGroup(), dict(self.kernels)
        first, last = self.kernels[0][0], self.kernels[-1][0]
        for number, (op, note) in enumerate(self.kernels):
            if not 1 <= len(note.over) <= 2:
                raise self._refused(number, f"it is over one loop of the kernel, or over two, got {list(note.over)}")
            if any(d.split > 1 for d in op.space.data):
                raise self._refused(number, "the program divides the kernel, which holds for the whole: say it in runs")
        name = self.kernels[0][1].over[0]
        if name not in row_loops(first):
            loops = ", ".join(row_loops(first)) or "none"
            raise self._refused(0, f"it has no loop {name} that trips can go over; those that it has are {loops}")
        group.add(first, name, row_loops(first)[name])
        for op in ops_from(first.next_op):
            if group.ops[-1] is last:
                break
            note = wanted.get(op) if isinstance(op, kernel.KernelOp) else None
            if isinstance(op, kernel.KernelOp) and note is not None:
                self._join(group, op, note.over[0])
            elif not isinstance(op, PASSED) and not (isinstance(op, kernel.KernelOp) and group.is_independent(op)):
                between = op.function_name if isinstance(op, kernel.KernelOp) else op.name
                message = f"{between} stands between its kernels and depends on some of them"
                raise self._refused(len(group.ops) - 1, message)
        return group

    def _join(self, group: RowGroup, op: kernel.KernelOp, name: str) -> None:
        number = len(group.ops)
        if not group.take(op, name) and not (number == len(self.kernels) - 1 and group.close(op)):
            raise self._refused(number, f"over {name} it does not go row by row with the kernels before it")
        if group.loops[-1] != name:
            raise self._refused(number, f"it would have to be over {group.loops[-1]} of the kernel, got {name}")

    def _check_trips(self, group: RowGroup, spec: SpyreSpec) -> None:
        """Refuse trips that the kernels or the machine do not have."""
        note, trips = self.note, sum(span.trips for span in self.note.spans)
        if note.spans == (TripSpan.of_all(trips),):
            self._check_pieces(group, trips, range(len(group.ops)))
        elif group.pieces % note.spans[0].pieces:
            message = f"its blocks have {note.spans[0].pieces} pieces, and the kernels {group.pieces}"
            raise self._refused(0, message)
        copies = {span.copies for span in note.spans} - {1}
        counts = divisors(shared_rows(group.ops, group.loops), spec.cores_per_card) if copies else []
        if wrong := sorted(copies.difference(counts)):
            possible = ", ".join(map(str, counts))
            raise self._refused(0, f"{wrong[0]} cores cannot share the rows of its weights, possible are {possible}")
        if trips * note.inner > spec.loop_trips:
            raise self._refused(0, f"it makes {trips * note.inner} trips, and the device counts {spec.loop_trips}")
        if not group.is_summed:
            return
        if len(note.spans) > 1 or note.inner > 1:
            raise self._refused(len(group.ops) - 1, "a sum over its rows grows in one loop with none inside")
        if trips > (most := most_trips(group.ops[-1], trips)):
            raise self._refused(len(group.ops) - 1, f"its sum would be rounded {trips} times, {most} are allowed")

    def _check_pieces(self, group: RowGroup, trips: int, numbers: Sequence[int]) -> None:
        """Refuse trips that are no equal blocks of the kernels with these numbers."""
        if group.pieces % trips:
            counts = ", ".join(map(str, divisors(group.pieces, group.pieces)[:MOST_SHOWN]))
            number = next(n for place, n in enumerate(numbers) if group.pieces_at(place) % trips)
            raise self._refused(number, f"{trips} trips are no equal blocks of whole sticks, possible are {counts}")

    def _inner(self) -> list[str]:
        """By kernel, its loop that the inner loop goes over; empty if there is none."""
        inner = [note.over[1] if len(note.over) > 1 else "" for _, note in self.kernels]
        if self.note.inner == 1 and any(inner):
            number = next(n for n, name in enumerate(inner) if name)
            raise self._refused(number, f"it is over {inner[number]} as well, and the function notes no trips for that")
        return inner if self.note.inner > 1 else []

    def _refused(self, number: int, why: str) -> PlanError:
        op, note = self.kernels[number]
        return PlanError(
            f"{op.function_name} cannot be in loop {note.loop}: {why}",
            where=placed(op.function_name, op.location),
            hint="change spyre.loops of the function and spyre.plan of its kernels together, or take both away",
        )


def divide_as_noted(op: kernel.KernelOp, note: KernelNote, made: Sequence[kernel.KernelOp]) -> None:
    """Divide the kernels that stand for one in loops, and put their buffers where the note wants them.

    Args:
        op: the kernel, which is in no loop any more.
        note: that it had.
        made: those that stand for it, in their order.

    Raises:
        PlanError: the note is about other kernels.
    """
    if note.runs is None:
        return
    where = placed(op.function_name, op.location)
    if len(note.runs) != len(made):
        said = "; ".join(", ".join(f"{d.name} = {d.extent}" for d in one.space.data) for one in made) or "none"
        message = f"{op.function_name} has {len(note.runs)} runs, and these kernels stand for it in its loops: {said}"
        raise PlanError(message, where=where, hint=f"give each of them a run, {OPEN}")
    for run, one in zip(note.runs, made, strict=True):
        if set(run.splits) != set(one.space.extents):
            loops = ", ".join(one.space.extents)
            message = f"a run of {op.function_name} divides {', '.join(run.splits)}, and the kernel has {loops}"
            raise PlanError(message, where=where, hint=f"name each of its loops once, {OPEN}")
        one.space = divided(one.space, run.splits)
        if not run.place:
            continue
        if not isinstance(one.output.owner, kernel.AllocOp):
            message = f"a run of {op.function_name} says {run.place} for its result, which is a part of a larger buffer"
            raise PlanError(message, where=where, hint="leave place out: the buffer is in device memory")
        move_to(one.output, "lx" if run.place == "lx" else "hbm")


__all__ = ["NotedLoop", "divide_as_noted"]
