"""Writers of the bytes that an operation reads: a scratchpad or the pool may hold another operation's data.

Files say addresses, not tensors, so three things can be told apart without any other source: bytes that nothing has
written since the bundle began; what is left of a tensor after another one was written over a part of it; and sticks
that, by the writer's division of the tensor, belong to another core. Where the caller knows which tensor every operand
is, any other tensor's bytes are stale as well.

Decision: docs/decisions/0045-stale-reads.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.machine.faults import FaultKind, Place, fault
from spyre_mlir.machine.memory.exact import Bools, Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout
from spyre_mlir.machine.memory.shadow import HOST, STICK, UNINITIALISED


@dataclass(frozen=True)
class Producer:
    """A tensor written by an operation.

    Args:
        step: number of the launch.
        layout: the tensor as the operation's output.
        access: where; None if every core wrote by itself.
        tensor: what the caller calls it.
    """

    step: int
    layout: OperandLayout
    access: ByteAccess | None
    tensor: str | None

    @property
    def op(self) -> str:
        """The operation, as ``2:add``."""
        return self.layout.name


@dataclass
class History:
    """Writes by the launches of one run, by launch number.

    Attributes:
        producers: what each launch wrote.
        ended: why the tensor of a launch is none any more.
        kept: of a launch that computed its result as a whole, which of its elements count as written; None for all.
        chosen: of a launch that chooses between its operands by number, which of their elements were written.
        repeatable: whether nothing else that is written depends on a number.
    """

    producers: dict[int, Producer] = field(default_factory=dict[int, Producer])
    ended: dict[int, str] = field(default_factory=dict[int, str])
    kept: dict[int, Bools | None] = field(default_factory=dict[int, "Bools | None"])
    chosen: dict[int, list[Bools | None]] = field(default_factory=dict[int, "list[Bools | None]"])
    repeatable: bool = True

    def wrote(self, memory: Memory, layout: OperandLayout, access: ByteAccess | None, tensor: str | None) -> None:
        """Record the output of the running launch."""
        if not memory.tracked:
            return
        self.producers[memory.step] = Producer(memory.step, layout, access, tensor)

    def require_own(self, memory: Memory, layout: OperandLayout, access: ByteAccess, tensor: str | None) -> None:
        """Refuse to read data left by another operation, or by another core.

        Raises:
            MachineFault: ``stale-read``, ``foreign-slice``, or ``out-of-bounds`` of the argument it should be.
        """
        if not memory.tracked:
            return
        require_tensor(memory, access, tensor)
        region = memory.locate(access.low, access.high, access.span)
        first = region.base // STICK
        writer, known = (access.sticks_in(array, first) for array in (region.states.writer, region.states.known))
        newest = int(writer.max())
        if not known.any() and newest == HOST and region.scratch:
            self._stale(memory, access, "its bytes hold what was there before the bundle began")
            return
        alone = bool((writer == newest).all())
        if tensor is not None:
            steps = [newest] if alone else [int(n) for n in np.unique(writer[known > 0])]
            self._require_tensor_last(memory, access, tensor, steps)
        if alone and layout.operand.component == keys.LX and (owner := self.producers.get(newest)) is not None:
            self._same_division(memory, layout, access, owner)

    def _require_tensor_last(self, memory: Memory, access: ByteAccess, tensor: str, steps: Sequence[int]) -> None:
        """Refuse what was written over a tensor since; what lies in its padding from before counts as nothing."""
        owners = [self.producers[step] for step in steps if step in self.producers]
        own = max((owner.step for owner in owners if owner.tensor == tensor), default=None)
        for owner in owners:
            if owner.tensor in (None, tensor):
                continue
            if own is None or owner.step > own:
                self._stale(memory, access, f"it wants {tensor}; {owner.op} has written {owner.tensor} there since")
                return
            region = memory.locate(access.low, access.high)
            first, states = region.base // STICK, region.states
            writer, known, tags = (access.sticks_in(x, first) for x in (states.writer, states.known, states.tags))
            left = writer == owner.step
            known[left], tags[left] = 0, UNINITIALISED
            self.ended[owner.step] = f"it wants {tensor}, never written there; {owner.op} wrote {owner.tensor}"

    def doomed(self, memory: Memory, access: ByteAccess) -> list[Producer]:
        """Return the producers whose tensors end at a write: those it overwrites in part, and not from inside.

        A tensor may be updated in place; a write that also reaches beyond it makes another tensor in its bytes.
        """
        region = memory.locate(access.low, access.high, access.span)
        under = access.sticks_in(region.states.writer, region.base // STICK)
        oldest, newest = int(under.min()), int(under.max())
        steps = {oldest, newest} if oldest == newest else {int(n) for n in np.unique(under)}
        found = [self.producers[step] for step in sorted(steps) if step in self.producers]
        return [p for p in found if p.access is not None and not _inside(access, p.access)]

    def end(self, memory: Memory, doomed: Sequence[Producer], by: str) -> None:
        """Remove the remains of overwritten tensors."""
        for old in doomed:
            if old.access is None:
                continue
            region = memory.locate(old.access.low, old.access.high)
            first, states = region.base // STICK, region.states
            writer, known, tags = (old.access.sticks_in(x, first) for x in (states.writer, states.known, states.tags))
            left = writer == old.step
            if left.any():
                known[left], tags[left] = 0, UNINITIALISED
                self.ended[old.step] = f"{by} has overwritten a part of what {old.op} wrote"

    def why(self, memory: Memory, address: int) -> str | None:
        """Return why a byte reads as uninitialised, if it was written once."""
        region = memory.locate(address, address + 1)
        return self.ended.get(int(region.states.writer[(address - region.base) // STICK]))

    def _same_division(self, memory: Memory, layout: OperandLayout, access: ByteAccess, owner: Producer) -> None:
        theirs = owner.layout
        if layout.agrees_with is theirs:
            return
        if (
            theirs.operand.component != keys.LX
            or len(theirs.starts) != len(layout.starts)
            or len(layout.labels) != len(layout.operand.order)
            # Who reads one entry of an inner dimension does not say so: its places are those of another tensor.
            or layout.tensor_extents[:-1] != theirs.tensor_extents[: max(0, len(theirs.tensor_extents) - 1)]
        ):
            return
        mine, written = layout.stick_places, theirs.stick_places
        shift = (layout.starts - theirs.starts) // STICK
        low, high = max(0, int(shift.max())), min(written.shape[1], int(shift.min()) + mine.shape[1])
        if high <= low or (shift != shift[0]).any():
            return
        wanted = layout.accessed_sticks[low - shift[0] : high - shift[0]]
        if not wanted.any():
            return
        apart = mine[:, low - shift[0] : high - shift[0]] - written[:, low:high]
        off = (apart != apart[0, wanted.argmax()]) & wanted
        if not off.any():
            layout.agrees_with = theirs
        else:
            core, at = (int(n) for n in np.argwhere(off)[0])
            address = int(layout.starts[core]) + (at + low - int(shift[0])) * STICK
            place = Place(op=access.place.op, tensor=access.place.tensor, core=core, low=address, high=address + STICK)
            message = f"by the division of {owner.op}, which wrote it, this stick belongs elsewhere in the tensor"
            hint = "divide both operations alike, or move the tensor through HBM"
            memory.log.meet(fault(FaultKind.FOREIGN_SLICE, message, place, hint=hint))

    def _stale(self, memory: Memory, access: ByteAccess, message: str) -> None:
        hint = "give tensors that are needed at the same time different addresses"
        memory.log.meet(fault(FaultKind.STALE_READ, f"{message}", access.span, hint=hint))


def require_tensor(memory: Memory, access: ByteAccess, tensor: str | None) -> None:
    """Refuse an access to another argument, or to scratch memory, instead of the intended argument, and vice versa.

    Raises:
        MachineFault: ``out-of-bounds``.
    """
    if tensor is None:
        return
    region = memory.locate(access.low, access.high, access.span)
    if region.name == tensor or not memory.arguments & {region.name, tensor}:
        return
    message = f"it means {tensor}, and these bytes are of {region.name}"
    raise fault(FaultKind.OUT_OF_BOUNDS, message, access.span, hint="use the address of the intended tensor")


def _inside(inner: ByteAccess, outer: ByteAccess) -> bool:
    return outer.low <= inner.low and inner.high <= outer.high


__all__ = ["History", "Producer", "require_tensor"]
