"""Transfers between host and card: a tensor in the layout of its type, from and to memory.

Decision: docs/decisions/0009-masks-integers-epsilon.md
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.hw.arrangement import STANDARD, as_read, as_stored
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.arrays import Array, HostArray, Mask
from spyre_mlir.machine.bundle.program_plans import ProgramPlans
from spyre_mlir.machine.faults import Place
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.memory.frames import Frame, StridedAxis, blocks
from spyre_mlir.machine.memory.operand_views import ByteAccess
from spyre_mlir.machine.memory.region import Leftover, MemoryRegion, Spare
from spyre_mlir.machine.memory.shadow import HOST, ShadowMemory

# Sticks of a weight that are decoded at a time.
_PIECE = 1 << 10


@dataclass
class _Image:
    """Contents of a region after a transfer; `source` shows whether the array is still alive."""

    source: weakref.ref[Array]
    cells: npt.NDArray[np.uint8]
    states: ShadowMemory


@dataclass
class ResidentTensors:
    """Device tensors already sent for immutable arrays: weights go to the card once. Plans of launches as well.

    An array counts if it is read-only and holds its own elements. Whoever writes over one on the card gets a copy.

    Attributes:
        spare: contents of regions that are gone.
        plans: what is known about the program's launches.
    """

    spare: Spare = field(default_factory=dict[int, "list[Leftover]"])
    plans: ProgramPlans = field(default_factory=ProgramPlans)
    _constants: dict[int, tuple[Operation, Array]] = field(default_factory=dict[int, tuple[Operation, Array]])
    _images: dict[tuple[Any, ...], _Image] = field(default_factory=dict[tuple[Any, ...], _Image])
    _files: dict[tuple[Any, ...], tuple[npt.NDArray[np.uint8], ShadowMemory]] = field(
        default_factory=dict[tuple[Any, ...], tuple[npt.NDArray[np.uint8], ShadowMemory]]
    )

    def constant(self, op: Operation, make: Callable[[], Array]) -> Array:
        """Return the numbers of a constant, made at the first request, as an array that counts."""
        if id(op) not in self._constants:
            values = np.array(make())
            values.setflags(write=False)
            self._constants[id(op)] = op, values
        return self._constants[id(op)][1]

    def restore(self, key: tuple[Any, ...], array: Array, region: MemoryRegion) -> bool:
        """Put a tensor sent before into a region; False if there is none."""
        image = self._images.get((id(array), *key))
        if image is None or image.source() is not array:
            return False
        region.share(image.cells, image.states)
        return True

    def remember(self, key: tuple[Any, ...], array: Array, region: MemoryRegion) -> None:
        """Keep the present contents of a region, if the array is immutable."""
        if array.flags.writeable or array.base is not None or isinstance(array, np.generic):
            return  # numpy's arithmetic makes numbers of arrays without dimensions
        whole = (id(array), *key)
        source = weakref.ref(array, lambda _: self._images.pop(whole, None))
        self._images[whole] = _Image(source, *region.lend())

    def restore_file(self, key: tuple[Any, ...], region: MemoryRegion) -> bool:
        """Same as `restore`, for a weight stored in the program's files."""
        if key not in self._files:
            return False
        region.share(*self._files[key])
        return True

    def remember_file(self, key: tuple[Any, ...], region: MemoryRegion) -> None:
        """Same as `remember`; lasts until the files are read again, with another `ResidentTensors`."""
        self._files[key] = region.lend()


def access_of(tensor: DeviceTensor, base: int) -> ByteAccess:
    """Return the elements of a tensor, one dim per dimension, padding included."""
    layout, lanes = tensor.layout, tensor.lanes
    strides, word = layout.strides(lanes), STICK_BYTES // lanes
    axes: list[tuple[StridedAxis, ...]] = []
    for dim in range(len(layout.extents)):
        outer = StridedAxis(layout.count(dim, lanes), strides[dim] * STICK_BYTES)
        axes.append((outer, StridedAxis(lanes, word)) if dim == layout.stick else (outer,))
    return ByteAccess(base, tuple(axes), tuple(layout.extents), tensor.format, Place())


def fills(tensor: DeviceTensor) -> bool:
    """Return whether the elements of a tensor, padding included, are all there is in its sticks."""
    return prod(tensor.layout.extents) == tensor.sticks * tensor.lanes


def send(memory: Memory, tensor: DeviceTensor, base: int, host: HostArray, *, zero_padding: bool) -> None:
    """Write a host tensor to memory; its padding is unchanged, or becomes zero."""
    values, known = host.values, host.defined
    access = access_of(tensor, base)
    stick, order = tensor.layout.stick, tensor.arrangement
    padded = access.shape != tensor.shape or order != STANDARD
    if zero_padding and (padded or known is not None or not fills(tensor)):
        everything = StridedAxis(tensor.sticks, STICK_BYTES), StridedAxis(tensor.lanes, STICK_BYTES // tensor.lanes)
        _fill(memory, ByteAccess(base, (everything,), (tensor.sticks * tensor.lanes,), tensor.format, Place()), None)
    written = None
    if padded:
        wide = np.zeros(access.shape, values.dtype)
        wide[tuple(slice(0, n) for n in tensor.shape)] = values
        values, written = as_stored(wide, stick, order), _inside(tensor.shape, access.shape)
        if order != STANDARD:
            written = as_stored(np.broadcast_to(written, access.shape), stick, order)
    if known is not None:
        sure = np.zeros(access.shape, np.bool_)
        sure[tuple(slice(0, n) for n in tensor.shape)] = known
        sure = as_stored(sure, stick, order)
        values, written = np.where(sure, values, 0), sure
    _fill(memory, access, values, None if zero_padding else written)


def send_image(
    memory: Memory,
    tensor: DeviceTensor,
    base: int,
    codes: Array,
    known: Mask | None,
) -> None:
    """Write a tensor that is already laid out in sticks.

    Args:
        memory: where it goes.
        tensor: its type.
        base: its first byte.
        codes: [sticks, lanes].
        known: which of them have a meaning; None for all.
    """
    axes = (StridedAxis(tensor.sticks, STICK_BYTES),), (StridedAxis(tensor.lanes, STICK_BYTES // tensor.lanes),)
    access = ByteAccess(base, axes, (tensor.sticks, tensor.lanes), tensor.format, Place())
    access.mark(memory, known, HOST)
    target = access.view(memory, Frame.of([access]))
    # A piece at a time, as numbers take several times the room of codes.
    for first in range(0, tensor.sticks, _PIECE):
        piece = slice(first, first + _PIECE)
        memory.put_codes(target[piece], codes[piece], tensor.format)


def _inside(shape: tuple[int, ...], extents: tuple[int, ...]) -> Mask:
    """Return which elements are not padding, of size one along dimensions that have none."""
    mask: Mask = np.ones((1,) * len(shape), np.bool_)
    for axis, (n, extent) in enumerate(zip(shape, extents, strict=True)):
        if n != extent:
            line = (np.arange(extent) < n).reshape([-1 if at == axis else 1 for at in range(len(shape))])
            mask = mask & line
    return mask


def _fill(memory: Memory, access: ByteAccess, values: Array | None, written: Mask | None = None) -> None:
    frame = Frame.of([access])
    access.mark(memory, written, HOST)
    target = access.view(memory, frame)
    if values is None:
        target[...] = 0
        return
    given = frame.cut(values)
    # In the order of the host: what is rounded is then read in one run, and written once.
    for (part,), place in blocks([given], target, along=given):
        memory.put(place, part, access.format, from_host=True)


def written_elements(memory: Memory, tensor: DeviceTensor, base: int) -> Mask | None:
    """Return which logical elements of a tensor were ever written, of size one along dimensions where all are equal.

    Raises:
        MachineFault: something else was written there.
    """
    access = access_of(tensor, base)
    written = access.written(memory)
    if written is None:
        return None
    if tensor.arrangement != STANDARD:
        written = as_read(np.broadcast_to(written, access.shape), tensor.layout.stick, tensor.arrangement)
    parts = zip(written.shape, tensor.shape, strict=True)
    return written[tuple(slice(None) if n == 1 else slice(0, extent) for n, extent in parts)]


def fetch(memory: Memory, tensor: DeviceTensor, base: int) -> HostArray:
    """Read the logical elements of a tensor.

    Raises:
        MachineFault: something else was written there.
    """
    access, box = access_of(tensor, base), tuple(slice(0, n) for n in tensor.shape)
    frame, written = Frame.of([access]), written_elements(memory, tensor, base)
    numbers = memory.numbers(access.view(memory, frame), access.format)
    values = np.empty(access.shape, numbers.dtype)
    np.copyto(frame.cut(values), numbers)
    if tensor.arrangement != STANDARD:
        values = as_read(values, tensor.layout.stick, tensor.arrangement)
    known = None if written is None or written.all() else np.broadcast_to(written, tensor.shape)
    return HostArray(values if access.shape == tensor.shape else np.array(values[box], order="C"), known)


__all__ = ["ResidentTensors", "access_of", "fetch", "fills", "send", "send_image", "written_elements"]
