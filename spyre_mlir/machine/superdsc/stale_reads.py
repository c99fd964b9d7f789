"""Writers of the bytes that an operation reads: a scratchpad or the pool may hold another operation's data.

Files say addresses, not tensors, so three things can be told apart without any other source: bytes that nothing has
written since the bundle began; what is left of a tensor after another one was written over a part of it; and sticks
that, by the writer's division of the tensor, belong to another core. Where the caller knows which tensor every operand
is, any other tensor's bytes are stale as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Operand
from spyre_mlir.machine.faults import FaultKind, Place, fault
from spyre_mlir.machine.memory.exact import Ints, Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout
from spyre_mlir.machine.memory.shadow import STICK, UNINITIALISED

HOST = 0


@dataclass(frozen=True)
class Producer:
    """A tensor written by an operation.

    Args:
        step: number of the launch.
        op: the operation, as ``2:add``.
        access: where; None if every core wrote by itself.
        numbers: in LX, per core the tensor's sticks in the order of their addresses, by their place in the tensor.
        first: in LX, per core the number of the first of these sticks.
        tensor: what the caller calls it.
        extents: in LX, how many sticks, or steps, the whole tensor has along each dimension, innermost first.
    """

    step: int
    op: str
    access: ByteAccess | None
    numbers: Ints | None
    first: Ints
    tensor: str | None
    extents: tuple[int, ...] = ()


@dataclass
class History:
    """Writes by the launches of one run, by launch number."""

    producers: dict[int, Producer] = field(default_factory=dict[int, Producer])
    ended: dict[int, str] = field(default_factory=dict[int, str])

    def wrote(
        self, memory: Memory, layout: OperandLayout, access: ByteAccess | None, slices: Ints, tensor: str | None
    ) -> None:
        """Record the output of the running launch."""
        lx = layout.operand.component == "lx"
        numbers = _numbers(layout.view, layout.operand, slices) if lx else None
        place = f"{layout.view.index}:{layout.view.op_func_name}"
        extents = _extents(layout.view, layout.operand) if lx else ()
        first = layout.starts // STICK
        self.producers[memory.step] = Producer(memory.step, place, access, numbers, first, tensor, extents)

    def require_own(
        self, memory: Memory, layout: OperandLayout, access: ByteAccess, slices: Ints, tensor: str | None
    ) -> None:
        """Refuse to read data left by another operation, or by another core.

        Raises:
            MachineFault: ``stale-read``, ``foreign-slice``, or ``out-of-bounds`` of the argument it should be.
        """
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
        if alone and layout.operand.component == "lx" and (owner := self.producers.get(newest)) is not None:
            self._same_division(memory, layout, access, owner, slices)

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

    def _same_division(
        self, memory: Memory, layout: OperandLayout, access: ByteAccess, owner: Producer, slices: Ints
    ) -> None:
        if (
            owner.numbers is None
            or len(owner.numbers) != len(layout.starts)
            or len(layout.labels) != len(layout.operand.order)
            # Who reads one entry of an inner dimension does not say so: its places are those of another tensor.
            or _extents(layout.view, layout.operand)[:-1] != owner.extents[: max(0, len(owner.extents) - 1)]
        ):
            return
        mine = _numbers(layout.view, layout.operand, slices)
        shift = layout.starts // STICK - owner.first
        low, high = max(0, int(shift.max())), min(owner.numbers.shape[1], int(shift.min()) + mine.shape[1])
        if high <= low or (shift != shift[0]).any():
            return
        wanted = _wanted(layout.view, layout.operand)[low - shift[0] : high - shift[0]]
        if not wanted.any():
            return
        apart = mine[:, low - shift[0] : high - shift[0]] - owner.numbers[:, low:high]
        off = (apart != apart[0, wanted.argmax()]) & wanted
        if off.any():
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


def _extents(view: Descriptor, operand: Operand) -> tuple[int, ...]:
    """Sticks, or steps, of the whole tensor along each dimension that has several, innermost first."""
    splits = {dim.label: dim.split for dim in view.dims}
    whole = [count * splits.get(label, 1) for label, count in zip(operand.order, operand.counts(), strict=True)]
    return tuple(extent for extent in whole if extent > 1)


def _numbers(view: Descriptor, operand: Operand, slices: Ints) -> Ints:
    """Per core, the place in the whole tensor of each of its sticks in LX, in the order of their addresses."""
    counts = operand.counts()
    labels = [dim.label for dim in view.dims]
    splits = [view.dims[labels.index(label)].split if label in labels else 1 for label in operand.order]
    steps = [prod(n * s for n, s in zip(counts[:at], splits[:at], strict=True)) for at in range(len(counts))]
    result = np.zeros((len(slices), 1), dtype=np.int64)
    for label, count, step in zip(operand.order, counts, steps, strict=True):
        own = slices[:, labels.index(label)] * count * step if label in labels else np.zeros(len(slices), np.int64)
        line = own[:, None] + np.arange(count) * step
        # The first entry of the order is the innermost, so earlier dims run fastest.
        result = (line[:, :, None] + result[:, None, :]).reshape(len(slices), -1)
    return result


def _wanted(view: Descriptor, operand: Operand) -> NDArray[np.bool_]:
    """Return which sticks of a core in LX, in address order, are accessed and not gaps between accessed ones."""
    held = operand.stick_lanes
    touched = {dim.label: -(-dim.per_core // held.get(dim.label, 1)) for dim in view.dims}
    result = np.ones(1, dtype=np.bool_)
    for label, count in zip(operand.order, operand.counts(), strict=True):
        line = np.arange(count) < touched.get(label, count)
        result = (line[:, None] & result[None, :]).reshape(-1)
    return result


__all__ = ["History", "Producer", "require_tensor"]
