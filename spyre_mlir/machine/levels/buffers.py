"""Device tensors of the kernel level: sticks, and which of their lanes are defined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import ToDeviceOp
from spyre_mlir.errors import InputError, IntegerRangeError
from spyre_mlir.hw.arrangement import as_read, as_stored
from spyre_mlir.hw.few_bits import Words
from spyre_mlir.hw.formats import DL16, EXACT_INTEGERS, FP32, device_format
from spyre_mlir.hw.moves import HostStep, moved
from spyre_mlir.hw.number_formats.dl16 import round_trip
from spyre_mlir.machine.arrays import Array, HostArray, Mask, first_index, strided
from spyre_mlir.machine.eager_rounding import MOST_INTEGER, as_eager, slot_type
from spyre_mlir.machine.faults import place_of


@dataclass
class DeviceBuffer:
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
    whole: DeviceBuffer | None = None

    @property
    def dead(self) -> bool:
        """Return whether its life has ended, or that of the buffer it is a tile of."""
        return self.freed or (self.whole is not None and self.whole.dead)

    @staticmethod
    def poisoned(tensor: DeviceTensor) -> DeviceBuffer:
        """Return a buffer without contents."""
        shape = (tensor.sticks, tensor.lanes)
        return DeviceBuffer(tensor, np.full(shape, np.nan, slot_type(tensor.format)), np.zeros(shape, np.bool_))


def logical_view(data: Array, tensor: DeviceTensor) -> Array:
    """Return the elements of a buffer by tensor dimension; the stick dimension is two axes, sticks and lanes."""
    layout, lanes = tensor.layout, tensor.lanes
    strides, shape, steps = layout.strides(lanes), list[int](), list[int]()
    for dim in range(len(layout.extents)):
        shape.append(layout.count(dim, lanes))
        steps.append(strides[dim] * lanes)
        if dim == layout.stick:
            shape.append(lanes)
            steps.append(1)
    return strided(data.reshape(-1), 0, shape, steps)


def send(tensor: DeviceTensor, values: Array, known: Mask | None, *, zero_padding: bool) -> DeviceBuffer:
    """Return a buffer that holds a host tensor; its padding is poisoned, or 0."""
    buffer = DeviceBuffer.poisoned(tensor)
    if zero_padding:
        buffer.values[...] = 0.0
        buffer.initialised[...] = True
    target, state = logical_view(buffer.values, tensor), logical_view(buffer.initialised, tensor)
    extents, box = tensor.layout.extents, tuple(slice(0, e) for e in tensor.shape)
    wide = np.full(extents, 0.0 if zero_padding else np.nan, buffer.values.dtype)
    sure = np.full(extents, zero_padding)
    wide[box], sure[box] = values, True if known is None else known
    stick, order = tensor.layout.stick, tensor.arrangement
    wide, sure = as_stored(wide, stick, order), as_stored(sure, stick, order)
    target[...], state[...] = wide.reshape(target.shape), sure.reshape(state.shape)
    return buffer


def receive(buffer: DeviceBuffer) -> tuple[Array, Mask]:
    """Return the logical elements of a buffer, and which of them were written."""
    tensor, box = buffer.tensor, tuple(slice(0, e) for e in buffer.tensor.shape)
    extents = tensor.layout.extents
    stick, order = tensor.layout.stick, tensor.arrangement
    values, known = (
        as_read(logical_view(data, tensor).reshape(extents), stick, order)
        for data in (buffer.values, buffer.initialised)
    )
    return values[(*box, ...)], known[(*box, ...)]


def after_moves(moves: Sequence[HostStep], host: HostArray) -> HostArray:
    """Return a host tensor after the moves of a transfer; zeros that they add are known."""
    if not moves:
        return host
    return HostArray(moved(host.values, moves), None if host.defined is None else ~moved(~host.defined, moves))


def counted_from_end(op: ToDeviceOp, values: Array) -> Array:
    """Return indices with negative ones counted from the end of their table, if the transfer asks for it."""
    if op.rows is None:
        return values
    wrapped = values + op.rows
    return np.where((values < 0) & (wrapped >= 0), wrapped, values)


def converted(op: ToDeviceOp, values: Array) -> Array:
    """Return numbers after the conversions of a transfer, each as eager rounds or wraps."""
    for element in op.converts_to:
        values = as_eager(values, str(element))
    return values


def sent_integers(
    op: ToDeviceOp, values: Array, tensor: DeviceTensor, name: str = "the tensor", *, exact: bool = True
) -> Array:
    """Return the numbers that the host sends: integers outside a format do not wrap or round silently.

    Exact numerics convert them to the types that the model converts them to.

    Args:
        op: the transfer.
        values: what the host has.
        tensor: what the device is to have.
        name: how a message calls it.
        exact: whether slots of floats hold every integer that their numpy type has.

    Raises:
        InputError: one does not fit.
    """
    if exact:
        values = converted(op, values)
    values = counted_from_end(op, values)
    form = device_format(tensor.format)
    for words in (move for move in op.moves if isinstance(move, Words)):
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        if not words.holds(low, high):
            raise InputError(
                f"{name} holds {low} to {high}, and the program packs it as integers of {words.bits} bits, "
                f"{words.least} to {-words.least - 1}",
                where=place_of(op),
                hint="compile the model with these weights, or with packed_weights=False",
            )
    if values.size == 0 or (form.floating and values.dtype.kind != "i"):
        return values
    if op.saturate is not None:
        most = EXACT_INTEGERS[form.name]
        beyond = most + 2  # the next number of the format
        return np.where(values > most, beyond, np.where(values < -most, -beyond, values))
    if exact and form.floating:
        return _in_slots(op, values, form.name, name)
    low, high = form.integers
    wrong = (round_trip(values) != values) if form is DL16 else (values < low) | (values > high)
    if wrong.any():
        at = first_index(wrong)
        known = f"every whole number up to {EXACT_INTEGERS[form.name]:,}" if form is DL16 else f"{low:,} to {high:,}"
        # An integer format holds indices, and the host would refuse these, too: no table has so many rows.
        kind = IntegerRangeError if form.floating else InputError
        raise kind(
            f"{name} holds {int(values[tuple(at)]):,} at {at}, and {tensor.format} holds {known}",
            where=place_of(op),
            hint=_HINTS.get(form.name, "no index is negative"),
        )
    return values


def _in_slots(op: ToDeviceOp, values: Array, form: str, name: str) -> Array:
    """The values, which the slots of a format have; raises InputError else."""
    most = 2 ** (np.finfo(slot_type(form)).nmant + 1)
    wrong = (values > most) | (values < -most) if most < MOST_INTEGER else np.zeros(values.shape, np.bool_)
    if wrong.any():
        at = first_index(wrong)
        raise InputError(
            f"{name} holds {int(values[tuple(at)]):,} at {at}, and exact numerics hold {form} integers up to {most:,}",
            where=place_of(op),
            hint="split the integer, or subtract an offset",
        )
    return values


_HINTS = {
    DL16.name: "it is converted to floats, which have 10 significant bits on the device; keep it an integer",
    FP32.name: "integers on the device are exact up to 2^24; compile with integers='exact', or subtract an offset",
}


def source_name(op: ToDeviceOp) -> str:
    """Return a transfer's source name for messages: the model's name if it is an argument."""
    if not isinstance(op.source, BlockArgument):
        return "the tensor"
    number, function = op.source.index, op.source.owner.parent_op()
    known: ArrayAttr[DictionaryAttr] | None = function.arg_attrs if isinstance(function, FuncOp) else None
    name = None if known is None else known.data[number].data.get("aten.name")
    return f"argument {number}, '{name.data}'," if isinstance(name, StringAttr) else f"argument {number}"
