"""Scratchpads of the kernel level: a write to one buffer invalidates another one in the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, shared_view
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.levels.buffers import DeviceBuffer


@dataclass
class _Held:
    """A buffer, its bytes in every scratchpad, and who wrote over it."""

    buffer: DeviceBuffer
    low: int
    high: int
    alloc: AllocOp
    lost_to: str | None = None

    @property
    def span(self) -> tuple[int, int]:
        """First byte, and one past the last."""
        return self.low, self.high

    def __str__(self) -> str:
        return f"bytes {self.low} to {self.high}"


@dataclass
class Scratchpads:
    """Buffers placed in LX; all cores hold their slices at the same bytes."""

    _held: list[_Held] = field(default_factory=list[_Held])

    def add(self, op: AllocOp, buffer: DeviceBuffer) -> None:
        """Record the place of a buffer.

        Raises:
            MachineFault: it does not fit the scratchpad.
        """
        if buffer.tensor.space != "lx" or op.offset is None:
            return
        low = op.offset.value.data
        held = _Held(buffer, low, low + shared_view(op.result).bytes_per_core(buffer.tensor), op)
        if held.high > (size := spec_at(op).lx_bytes):
            message = f"{held} of a scratchpad of {size}"
            raise fault(FaultKind.LX_OVERFLOW, message, op, span=held.span)
        # The same op in the trip before: its buffer cannot be named any more.
        self._held = [h for h in self._held if h.alloc is not op]
        self._held.append(held)

    def remove(self, buffer: DeviceBuffer) -> None:
        """Forget a buffer whose life has ended."""
        self._held = [h for h in self._held if h.buffer is not buffer]

    def check(self, op: KernelOp, args: Sequence[DeviceBuffer]) -> None:
        """Refuse an op that reads overwritten contents, or overwrites its own inputs.

        Raises:
            MachineFault: ``overwritten-read`` or ``read-write-race``.
        """
        for number, buffer in enumerate(args):
            held = self._find(buffer)
            if held is not None and held.lost_to is not None:
                name = "the output" if number == len(args) - 1 else f"input {number}"
                raise fault(
                    FaultKind.OVERWRITTEN_READ,
                    f"{name} is in {held} of the scratchpads, which {held.lost_to} has written since",
                    op,
                    hint="give the two buffers different addresses",
                    tensor=name,
                    span=held.span,
                )
        own = self._find(args[-1])
        for other in self._below(args[-1]):
            reading = [n for n, b in enumerate(args[:-1]) if b is other.buffer]
            # Over the very bytes it reads, an element-wise function may write; a row further it overwrites unread ones.
            moved = own is not None and other.low != own.low
            if any(moved or not op.may_take_over(n) for n in reading):
                raise fault(
                    FaultKind.READ_WRITE_RACE,
                    f"{op.function_name} reads {other} of the scratchpads and writes into them out of step",
                    op,
                    hint="give the output an address of its own",
                    tensor="the output",
                    span=other.span,
                )

    def overwrite(self, op: KernelOp, args: Sequence[DeviceBuffer]) -> None:
        """Invalidate the buffers whose bytes the op has written."""
        for other in self._below(args[-1]):
            if other.buffer.initialised.any():
                other.buffer.values[...], other.buffer.initialised[...] = np.nan, False
                other.lost_to = op.function_name

    def _find(self, buffer: DeviceBuffer) -> _Held | None:
        return next((h for h in self._held if h.buffer is buffer), None)

    def _below(self, buffer: DeviceBuffer) -> list[_Held]:
        own = self._find(buffer)
        if own is None:
            return []
        return [h for h in self._held if h is not own and h.low < own.high and own.low < h.high]
