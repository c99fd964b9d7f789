"""Tensors in device memory as the kernel level sees them: sticks, and which of their lanes hold a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import IntegerAttr

from spyre_mlir.dialects.spyre.attributes import FROM_END, DeviceTensor
from spyre_mlir.dialects.spyre.kernel import ToDeviceOp
from spyre_mlir.hw.dl16 import round_trip
from spyre_mlir.hw.formats import DL16, device_format
from spyre_mlir.machine.arrays import Array, Mask, fault, first_index, strided
from spyre_mlir.machine.faults import FaultKind


@dataclass
class Buffer:
    """A tensor in device memory; ops write into it.

    Attributes:
        tensor: what its type says.
        values: elements, [sticks, lanes]; NaN where poisoned.
        initialised: which lanes hold a value, [sticks, lanes].
        freed: whether its life is over.
        whole: the buffer this one is a tile of, if any.
    """

    tensor: DeviceTensor
    values: Array
    initialised: Mask
    freed: bool = False
    whole: Buffer | None = None

    @property
    def dead(self) -> bool:
        """Whether its life is over, or that of the buffer it is a tile of."""
        return self.freed or (self.whole is not None and self.whole.dead)

    @staticmethod
    def poisoned(tensor: DeviceTensor) -> Buffer:
        """A buffer without contents."""
        shape = (tensor.sticks, tensor.lanes)
        return Buffer(tensor, np.full(shape, np.nan), np.zeros(shape, np.bool_))


def logical_view(data: Array, tensor: DeviceTensor) -> Array:
    """The elements of a buffer by tensor dimension; the stick dimension is two axes, sticks and lanes."""
    layout, lanes = tensor.layout, tensor.lanes
    strides, shape, steps = layout.strides(lanes), list[int](), list[int]()
    for dim in range(len(layout.extents)):
        shape.append(layout.count(dim, lanes))
        steps.append(strides[dim] * lanes)
        if dim == layout.stick:
            shape.append(lanes)
            steps.append(1)
    return strided(data.reshape(-1), 0, shape, steps)


def send(tensor: DeviceTensor, values: Array, known: Mask | None, *, zero_padding: bool) -> Buffer:
    """A buffer that holds a host tensor; its padding is poisoned, or 0."""
    buffer = Buffer.poisoned(tensor)
    if zero_padding:
        buffer.values[...] = 0.0
        buffer.initialised[...] = True
    target, state = logical_view(buffer.values, tensor), logical_view(buffer.initialised, tensor)
    extents, box = tensor.layout.extents, tuple(slice(0, e) for e in tensor.shape)
    wide, sure = np.full(extents, 0.0 if zero_padding else np.nan), np.full(extents, zero_padding)
    wide[box], sure[box] = values, True if known is None else known
    target[...], state[...] = wide.reshape(target.shape), sure.reshape(state.shape)
    return buffer


def receive(buffer: Buffer) -> tuple[Array, Mask]:
    """The logical elements of a buffer, and which of them were written."""
    tensor, box = buffer.tensor, tuple(slice(0, e) for e in buffer.tensor.shape)
    extents = tensor.layout.extents
    return (
        logical_view(buffer.values, tensor).reshape(extents)[(*box, ...)],
        logical_view(buffer.initialised, tensor).reshape(extents)[(*box, ...)],
    )


def counted_from_end(op: ToDeviceOp, values: Array) -> Array:
    """Indices with negative ones counted from the end of their table, if the transfer says so."""
    rows = op.attributes.get(FROM_END)
    if not isinstance(rows, IntegerAttr):
        return values
    wrapped = values + rows.value.data
    return np.where((values < 0) & (wrapped >= 0), wrapped, values)


def check_integers(op: ToDeviceOp, values: Array, tensor: DeviceTensor) -> None:
    """Raises a fault unless integers fit the device format; they neither wrap nor round in silence."""
    form = device_format(tensor.format)
    if values.size == 0 or (form.floating and values.dtype.kind != "i"):
        return
    if form.floating:
        stored = round_trip(values) if form is DL16 else values
        if (stored != values).any():
            at = first_index(stored != values)
            raise fault(
                FaultKind.INTEGER_RANGE,
                f"{tensor.format} has no number {int(values[tuple(at)])}, which the tensor holds at {at}",
                op,
                hint="integers that the device computes with are exact up to 1024; larger ones only where they index",
            )
        return
    low, high = form.integers
    if values.min() < low or values.max() > high:
        raise fault(
            FaultKind.INTEGER_RANGE, f"{tensor.format} holds {low} to {high}, got {values.min()} to {values.max()}", op
        )
