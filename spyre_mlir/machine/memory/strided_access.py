"""Elements of an operand as strided boxes: their values in memory, and which of them were ever written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from spyre_mlir.machine.faults import FaultKind, Place, fault
from spyre_mlir.machine.memory.exact import (
    Bools,
    Floats,
    Ints,
    Memory,
    Stored,
    element_bytes,
)
from spyre_mlir.machine.memory.frames import Frame, StridedAxis, fine_axes
from spyre_mlir.machine.memory.region import MemoryRegion, StridedWindow
from spyre_mlir.machine.memory.shadow import STICK, ShadowRead, StickBox, spread

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class TrackedArray:
    """Values of an operation, and which of them were ever written (None: all).

    Args:
        values: one axis per axis of the frame the operation works in.
        written: one axis per iteration dim, of size one where nothing changes along it.
    """

    values: Floats
    written: Bools | None = None


@dataclass(frozen=True)
class ByteAccess:
    """The elements of one operand that one core, or all cores together, touch.

    Args:
        base: byte address of the element at index zero.
        axes: per iteration dim, its axes from the slowest to the fastest.
        shape: extent per iteration dim as the operation sees it; larger than the axes where the buffer falls short.
        format: data format name.
        place: the operation and tensor, for faults.
    """

    base: int
    axes: tuple[tuple[StridedAxis, ...], ...]
    shape: tuple[int, ...]
    format: str
    place: Place

    @cached_property
    def word_bytes(self) -> int:
        """Bytes of one element."""
        return element_bytes(self.format)

    @cached_property
    def flat_axes(self) -> tuple[StridedAxis, ...]:
        """Axes of more than one step, of all dims, in order."""
        return tuple(axis for axes in self.axes for axis in axes if axis.count != 1)

    @property
    def visible(self) -> tuple[int, ...]:
        """Extent per iteration dim that lies inside the buffer."""
        return self._visible

    @cached_property
    def _visible(self) -> tuple[int, ...]:
        return tuple(prod(axis.count for axis in axes) for axes in self.axes)

    @cached_property
    def low(self) -> int:
        """First byte touched."""
        return self.base + sum(min(0, a.stride * (a.count - 1)) for a in self.flat_axes)

    @cached_property
    def high(self) -> int:
        """One past the last byte touched."""
        return self.base + sum(max(0, a.stride * (a.count - 1)) for a in self.flat_axes) + self.word_bytes

    @cached_property
    def injective(self) -> bool:
        """Return whether different indices are known to be different bytes; False when in doubt."""
        reach = self.word_bytes
        for axis in sorted(self.flat_axes, key=lambda a: abs(a.stride)):
            if abs(axis.stride) < reach:
                return False
            reach += abs(axis.stride) * (axis.count - 1)
        return True

    def addresses(self) -> Ints:
        """Return the byte address of every visible element, shaped as the iteration dims."""
        result = np.full((1,) * len(self.flat_axes), self.base, dtype=np.int64)
        for place, axis in enumerate(self.flat_axes):
            line = np.arange(axis.count, dtype=np.int64) * axis.stride
            result = result + line.reshape([-1 if at == place else 1 for at in range(len(self.flat_axes))])
        return result.reshape(self.visible)

    def touches(self, address: int) -> bool:
        """Return whether a byte is part of a visible element."""
        if not self.low <= address < self.high:
            return False
        before = address - self.addresses()
        return bool(((before >= 0) & (before < self.word_bytes)).any())

    def read(self, memory: Memory) -> TrackedArray:
        """Copy the elements out of memory, one axis per iteration dim.

        Raises:
            MachineFault: out of bounds, or an element was last written in another format.
        """
        written = self.written(memory)
        stored = self._window(memory).elements(memory.stored_type(self.format))
        values = memory.numbers(stored, self.format).reshape(self.visible)
        if written is not None:
            written = spread(written, self.visible)
        if self.visible == self.shape:
            return TrackedArray(values, written)
        inside = tuple(slice(0, n) for n in self.visible)
        padded, known = np.zeros(self.shape, values.dtype), np.zeros(self.shape, dtype=np.bool_)
        padded[inside] = values
        known[inside] = True if written is None else written
        return TrackedArray(padded, known)

    def write(self, memory: Memory, tensor: TrackedArray) -> None:
        """Write an array with one axis per iteration dim; elements that were never written stay so.

        Raises:
            MachineFault: out of bounds.
        """
        inside = tuple(slice(0, n) for n in self.visible)
        self.mark(memory, None if tensor.written is None else tensor.written[inside])
        stored = self._window(memory).elements(memory.stored_type(self.format))
        memory.put(stored, tensor.values[inside].reshape(stored.shape), self.format)

    def view(self, memory: Memory, frame: Frame) -> Stored:
        """Return a view of the elements in memory, one axis per axis of the frame.

        Raises:
            MachineFault: out of bounds.
        """
        return FramedAccess.of(self, frame).elements(memory)

    def written(self, memory: Memory) -> Bools | None:
        """Return which elements were ever written; one axis per iteration dim, of size one where all are equal.

        Raises:
            MachineFault: out of bounds, or an element was last written in another format.
        """
        region = self._region(memory)
        if not memory.tracked:
            return None
        found = self._box(region)
        if found is None:
            region.clear()
            addresses = self.addresses()
            at = addresses - region.base
            reading = region.states.read_elements(at, self.word_bytes, self.format, scratch=region.scratch)
            if reading.wrong is not None:
                self._wrong(reading, int(np.ravel_multi_index(reading.wrong, addresses.shape)))
            return reading.written
        box, lane = found
        reading = region.states.read(box, self.format, scratch=region.scratch)
        if reading.wrong is not None:
            at = _with_lane(reading.wrong, lane)
            shape = tuple(axis.count for axis in self.flat_axes)
            self._wrong(reading, int(np.ravel_multi_index(at, shape)) if shape else 0)
        if reading.written is None:
            return None
        region.clear(box)
        return self._by_dims(_moved_lane(reading.written, lane))

    def mark(self, memory: Memory, written: Bools | None, writer: int | None = None) -> None:
        """Mark the visible elements as written.

        Args:
            memory: where.
            written: which really are, one axis per iteration dim; the others become uninitialised. None: all.
            writer: number of the launch that writes; None for the one that runs.

        Raises:
            MachineFault: out of bounds.
        """
        region, writer = self._region(memory), memory.step if writer is None else writer
        region.own()
        if not memory.tracked:
            return
        found = self._box(region)
        if found is None:
            region.clear()
            at = self.addresses() - region.base
            known = None if written is None else spread(written, at.shape)
            region.states.write_elements(at, self.word_bytes, self.format, known, writer)
            return
        box, lane = found
        known = None if written is None else self._by_axes(written)
        if known is not None:
            known = known[..., None] if lane is None else _lane_last(known, lane)
        if known is not None or box.bytes != STICK:
            region.clear(box)
        region.states.write(box, self.format, known, writer)

    def _wrong(self, reading: ShadowRead, flat: int) -> NoReturn:
        message = f"read as {self.format}, last written as {reading.found}"
        raise fault(FaultKind.WRONG_FORMAT, message, self._place_of(flat))

    def _box(self, region: MemoryRegion) -> tuple[StickBox, int | None] | None:
        """The sticks touched, and which of the flat axes runs inside one; None if the access is no box of sticks."""
        if region.base not in self._boxes:
            self._boxes[region.base] = self._made_box(self.base - region.base)
        return self._boxes[region.base]

    @cached_property
    def _boxes(self) -> dict[int, tuple[StickBox, int | None] | None]:
        """The box by the base of the region that it lies in."""
        return {}

    def _made_box(self, first: int) -> tuple[StickBox, int | None] | None:
        lanes = [place for place, axis in enumerate(self.flat_axes) if axis.stride % STICK]
        if len(lanes) > 1 or first % STICK:
            return None
        lane = lanes[0] if lanes else None
        count = 1 if lane is None else self.flat_axes[lane].count
        if lane is not None and (self.flat_axes[lane].stride != self.word_bytes or count * self.word_bytes > STICK):
            return None
        outer = [axis for place, axis in enumerate(self.flat_axes) if place != lane]
        shape, steps = tuple(axis.count for axis in outer), tuple(axis.stride // STICK for axis in outer)
        return StickBox(first // STICK, shape, steps, count, self.word_bytes), lane

    def sticks_in(self, array: npt.NDArray[Number], first: int) -> npt.NDArray[Number]:
        """Return a view of the touched sticks in an array with an entry per stick, the first being stick `first`."""
        shape, steps = self._touched
        size = array.itemsize
        strides = tuple(step * size for step in steps)
        return np.ndarray(shape, array.dtype, array.data, (self.base // STICK - first) * size, strides)

    @cached_property
    def _touched(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Counts and steps of the touched sticks; the last axis runs over the sticks that one row of lanes reaches."""
        axes = [axis for axis in self.flat_axes if axis.stride % STICK == 0]
        lanes = [axis for axis in self.flat_axes if axis.stride % STICK]
        # Lanes that reach beyond their stick, in a contiguous index tensor, touch all sticks up to their last.
        reach = sum(axis.stride * (axis.count - 1) for axis in lanes) + self.base % STICK
        return (*(a.count for a in axes), reach // STICK + 1), (*(a.stride // STICK for a in axes), 1)

    def _by_dims(self, mask: Bools) -> Bools:
        """From one axis per flat axis to one per iteration dim."""
        shape: list[int] = []
        wide: list[int] = []
        at = 0
        for axes in self.axes:
            own = [axis.count for axis in axes if axis.count != 1]
            given = mask.shape[at : at + len(own)]
            at += len(own)
            shape.append(1 if prod(given) == 1 else prod(own))
            wide.extend(given if prod(given) == 1 else own)
        return spread(mask, wide).reshape(shape)

    def _by_axes(self, mask: Bools) -> Bools:
        """The other way round."""
        shape: list[int] = []
        for size, axes in zip(mask.shape, self.axes, strict=True):
            own = [axis.count for axis in axes if axis.count != 1]
            shape.extend([1] * len(own) if size == 1 else own)
        return mask.reshape(shape)

    def _region(self, memory: Memory) -> MemoryRegion:
        return memory.locate(self.low, self.high, self.span)

    def _window(self, memory: Memory) -> StridedWindow:
        region = self._region(memory)
        shape = tuple(axis.count for axis in self.flat_axes)
        return StridedWindow(region, self.base - region.base, shape, tuple(axis.stride for axis in self.flat_axes))

    def _place_of(self, flat: int) -> Place:
        address = int(self.addresses().reshape(-1)[flat])
        return self._at(address, address + self.word_bytes)

    def _at(self, low: int, high: int) -> Place:
        return Place(op=self.place.op, tensor=self.place.tensor, core=self.place.core, low=low, high=high)

    @cached_property
    def span(self) -> Place:
        """Return the place of everything touched."""
        return self._at(self.low, self.high)

    def place_at(self, index: Sequence[int]) -> Place:
        """Return the place of the element at an index of the iteration dims."""
        inside = tuple(min(i, n - 1) for i, n in zip(index, self.visible, strict=True))
        return self._place_of(int(np.ravel_multi_index(inside, self.visible)))


@dataclass(frozen=True, eq=False)
class FramedAccess:
    """An access along the axes of a frame.

    Args:
        access: the elements.
        shape: how many along each axis.
        steps: bytes from one to the next along each axis.
    """

    access: ByteAccess
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    @staticmethod
    def of(access: ByteAccess, frame: Frame) -> FramedAccess:
        """Cut an access as a frame says."""
        axes = [axis for place, own in enumerate(access.axes) for axis in fine_axes(own, frame.counts[place])]
        return FramedAccess(access, tuple(axis.count for axis in axes), tuple(axis.stride for axis in axes))

    def elements(self, memory: Memory) -> Stored:
        """Return a view of the elements in memory.

        Raises:
            MachineFault: out of bounds.
        """
        access = self.access
        region = memory.locate(access.low, access.high, access.span)
        scale, kind = region.scale, memory.stored_type(access.format)
        if scale not in self._strides:
            self._strides[scale] = tuple(step * scale for step in self.steps)
        first = (access.base - region.base) * scale
        return np.ndarray(self.shape, kind, region.cells.data, first, self._strides[scale])

    @cached_property
    def _strides(self) -> dict[int, tuple[int, ...]]:
        """Steps in bytes of the host, by how many there are per byte."""
        return {}


def _with_lane(index: tuple[int, ...], lane: int | None) -> tuple[int, ...]:
    outer = index[:-1]
    return outer if lane is None else (*outer[:lane], index[-1], *outer[lane:])


def _moved_lane(mask: Bools, lane: int | None) -> Bools:
    if lane is None:
        return mask[..., 0]
    outer = range(mask.ndim - 1)
    return mask.transpose((*outer[:lane], mask.ndim - 1, *outer[lane:]))


def _lane_last(mask: Bools, lane: int) -> Bools:
    return mask.transpose((*range(lane), *range(lane + 1, mask.ndim), lane))
