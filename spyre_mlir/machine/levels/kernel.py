"""Rules for the kernel level: hardware functions on sticks, with the state of every lane.

A lane is poisoned until something writes it. Poison travels with the data, lane by lane, and is a fault where
the program would notice: in lane 0 of a stick that arithmetic writes, or on the way back to the host. The lanes
behind it may stay poisoned: padding is computed on and never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls

from spyre_mlir.dialects.spyre.kernel import (
    AllocOp,
    ComputeOp,
    ConvertOp,
    FreeOp,
    FromDeviceOp,
    KernelConstantOp,
    RestickifyOp,
    ToDeviceOp,
    device_tensor,
)
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.hw.formats import FP8
from spyre_mlir.hw.number_formats import fp8
from spyre_mlir.hw.sticks import StickAccess
from spyre_mlir.machine.arrays import Array, HostArray, Mask, axis_range, check_known, contract, tensor_type
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.hardware_functions import rearranged
from spyre_mlir.machine.levels.buffers import DeviceBuffer, after_moves, receive, send, sent_integers, source_name
from spyre_mlir.machine.levels.loop import gather_rows, known_numbers
from spyre_mlir.machine.levels.operands import WalkedOperand, check_every_point_kept, operands_of, write
from spyre_mlir.machine.levels.scratchpads import Scratchpads
from spyre_mlir.ops.function_facts import LaneOrder
from spyre_mlir.ops.hardware_functions import function_of
from spyre_mlir.ops.table import Family


def pointwise(op: ComputeOp, inputs: Sequence[WalkedOperand], out: WalkedOperand) -> None:
    """Compute element by element; states combine, except that a selection has the state of the selected element."""
    axes = out.own_axes
    check_every_point_kept(op, out)
    values = [x.values(axes) for x in inputs]
    states = [x.initialised(axes) for x in inputs]
    with np.errstate(all="ignore"):
        result = np.asarray(op.entry.meaning(*values, **op.numbers))
    function = function_of(op.function_name)
    if function is not None and function.selects:
        state = np.asarray(states[0] & np.where(values[0] != 0, states[1], states[2]))
    else:
        state = np.asarray(np.logical_and.reduce(states))
    write(out, result, state, copies=op.entry.family is Family.MOVEMENT)


def reduction(op: ComputeOp, inputs: Sequence[WalkedOperand], out: WalkedOperand) -> None:
    """Reduce the dimensions the output lacks, over their logical extents, without padding."""
    (source,), grid, kept = inputs, out.grid, out.grid.names(out.access)
    names = list(grid.extents)
    logical = op.space.extents
    box = tuple(slice(0, None if n in kept else logical[n]) for n in names)
    folded = tuple(i for i, n in enumerate(names) if n not in kept)
    shape = [grid.extents[n] for n in names]
    values = source.values(grid.axes).reshape(shape)[box]
    states = source.initialised(grid.axes).reshape(shape)[box]
    if folded:
        with np.errstate(all="ignore"):
            values = np.asarray(op.entry.meaning(values, dim=folded))
        states = np.asarray(states.all(axis=folded))
    result = grid.shape(out.own_axes)
    write(out, values.reshape(result), states.reshape(result), copies=False)


def contraction(op: ComputeOp, inputs: Sequence[WalkedOperand], out: WalkedOperand) -> None:
    """Contract over whole sticks, padding included, which must hold zeros.

    Raises:
        MachineFault: ``wrong-product``.
    """
    a, b = inputs
    axes, a_axes, b_axes = out.own_axes, a.own_axes, b.own_axes
    try:
        values = contract(a.values(a_axes), b.values(b_axes), a_axes, b_axes, axes)
    except ValueError as error:
        raise fault(FaultKind.WRONG_PRODUCT, str(error), op) from error
    state: Mask = np.ones(values.shape, np.bool_)
    for x, own in ((a, a_axes), (b, b_axes)):
        known = x.initialised(own).all(axis=tuple(i for i, n in enumerate(own) if n not in axes))
        state = state & known.reshape([count if n in own else 1 for n, count in zip(axes, values.shape, strict=True)])
    write(out, values, state, copies=False)


def convert(op: ConvertOp, source: WalkedOperand, out: WalkedOperand) -> None:
    """Return elements in their order after a change of width; a sparse stick stays sparse."""
    check_every_point_kept(op, out)
    names, grid, axes = out.grid.names(out.access), out.grid, out.own_axes
    values, states = source.values(axes), source.initialised(axes)
    if out.buffer.tensor.format == FP8.name:
        values = fp8.round_trip(values)
    if out.access.lane is not None and out.buffer.tensor.lanes != source.buffer.tensor.lanes:
        narrow = max(source.buffer.tensor.lanes, out.buffer.tensor.lanes)
        lanes = LaneOrder.WIDENED if out.buffer.tensor.lanes < narrow else LaneOrder.NARROWED
        whole, axis = [grid.extents[n] for n in names], names.index(out.access.lane)
        values, states = (
            rearranged(x.reshape(whole), axis, lanes, narrow).reshape(grid.shape(axes)) for x in (values, states)
        )
    write(out, values, states, copies=True)


def gather(op: GatherOp, indices: DeviceBuffer, table: DeviceBuffer, out: DeviceBuffer) -> None:
    """Copy the rows that the indices name; an index in the lanes runs to its logical extent.

    Raises:
        MachineFault: ``use-after-free``.
    """
    accesses, lanes = op.accesses(), [t.lanes for t in op.tensors]
    padded = op.padded_extents()
    extents = {n: padded[n] if n == accesses[2].lane else e for n, e in op.space.extents.items()}
    grids = [_element_grid(a, n, extents) for a, n in zip(accesses, lanes, strict=True)]
    buffers = (indices, table, out)
    for buffer, name in zip(buffers, ("the indices", "the table", "the output"), strict=True):
        if buffer.dead:
            raise fault(FaultKind.USE_AFTER_FREE, f"{name} was freed", op, tensor=name)
    axis = op.axis.value.data
    at = _inside(op, grids[0], indices, "the indices")
    check_known(indices.initialised.reshape(-1)[at], op, "the indices")
    rows = gather_rows(indices.values.reshape(-1)[at], table.tensor.shape[axis], op)
    row_step = table.tensor.layout.strides(lanes[1])[axis] * lanes[1]
    source = _inside(op, grids[1] + rows * row_step, table, "the table")
    target = _inside(op, np.broadcast_to(grids[2], tuple(extents.values())), out, "the output")
    # The buffer is dense, so reshape gives a view and the writes arrive in it.
    out.values.reshape(-1)[target] = table.values.reshape(-1)[source]
    out.initialised.reshape(-1)[target] = table.initialised.reshape(-1)[source]


def _element_grid(acc: StickAccess, lanes: int, extents: dict[str, int]) -> Array:
    """Position in memory of the element at every point, of extent 1 along dimensions not walked."""
    rank, grid = len(extents), np.full((1,) * len(extents), acc.offset * lanes, np.int64)
    for axis, (name, extent) in enumerate(extents.items()):
        steps = axis_range(axis, extent if name in acc.strides else 1, rank)
        stride = acc.strides.get(name, 0) * lanes
        grid = grid + ((steps // lanes) * stride + steps % lanes if name == acc.lane else steps * stride)
    return grid


def _inside(op: GatherOp, positions: Array, buffer: DeviceBuffer, name: str) -> Array:
    if positions.min() < 0 or positions.max() >= buffer.values.size:
        message = f"{name}: element {int(positions.max())} of a buffer of {buffer.values.size}"
        raise fault(FaultKind.OUT_OF_BOUNDS, message, op)
    return positions


@register_impls
class KernelFunctions(InterpreterFunctions):
    """Rules of `spyre.kernel`."""

    def __init__(self) -> None:
        """Starts with empty scratchpads."""
        self.scratchpads = Scratchpads()

    @impl(ComputeOp)
    def run_compute(self, _interpreter: Interpreter, op: ComputeOp, args: PythonValues) -> PythonValues:
        """Run a hardware function by the family of its table entry.

        Raises:
            MachineFault: ``operand-count``, ``wrong-format``.
        """
        buffers = cast(tuple[DeviceBuffer, ...], args)
        self.scratchpads.check(op, buffers)
        *inputs, out = operands_of(op, args)
        wanted = sum(p.is_tensor and p.required for p in op.entry.params)
        if len(inputs) != wanted:
            raise fault(FaultKind.OPERAND_COUNT, f"{op.function_name} takes {wanted} tensors, here {len(inputs)}", op)
        if len(formats := {buffer.tensor.format for buffer in buffers[:-1]}) > 1:
            raise fault(FaultKind.WRONG_FORMAT, f"{op.function_name} of {' and '.join(sorted(formats))}", op)
        match op.entry.family:
            case Family.CONTRACTION:
                contraction(op, inputs, out)
            case Family.REDUCTION:
                reduction(op, inputs, out)
            case _:
                pointwise(op, inputs, out)
        self.scratchpads.overwrite(op, buffers)
        return ()

    @impl(RestickifyOp)
    def run_restickify(self, _interpreter: Interpreter, op: RestickifyOp, args: PythonValues) -> PythonValues:
        """Copy values and states to the other layout."""
        buffers = cast(tuple[DeviceBuffer, ...], args)
        self.scratchpads.check(op, buffers)
        source, out = operands_of(op, args)
        check_every_point_kept(op, out)
        axes = out.own_axes
        write(out, source.values(axes), source.initialised(axes), copies=True)
        self.scratchpads.overwrite(op, buffers)
        return ()

    @impl(ConvertOp)
    def run_convert(self, _interpreter: Interpreter, op: ConvertOp, args: PythonValues) -> PythonValues:
        """Copy values and states to the other format, in the order after the change of width."""
        buffers = cast(tuple[DeviceBuffer, ...], args)
        self.scratchpads.check(op, buffers)
        convert(op, *operands_of(op, args))
        self.scratchpads.overwrite(op, buffers)
        return ()

    @impl(GatherOp)
    def run_gather(self, _interpreter: Interpreter, op: GatherOp, args: PythonValues) -> PythonValues:
        """Copy rows of a table."""
        buffers = cast(tuple[DeviceBuffer, DeviceBuffer, DeviceBuffer], args)
        self.scratchpads.check(op, buffers)
        gather(op, *buffers)
        self.scratchpads.overwrite(op, buffers)
        return ()

    @impl(AllocOp)
    def run_alloc(self, _interpreter: Interpreter, op: AllocOp, _args: PythonValues) -> PythonValues:
        """Return a poisoned buffer."""
        buffer = DeviceBuffer.poisoned(device_tensor(op.result))
        self.scratchpads.add(op, buffer)
        return (buffer,)

    @impl(FreeOp)
    def run_free(self, _interpreter: Interpreter, op: FreeOp, args: PythonValues) -> PythonValues:
        """Poison the buffer, and mark its life as ended.

        Raises:
            MachineFault: ``double-free``.
        """
        (buffer,) = cast(tuple[DeviceBuffer], args)
        if buffer.freed:
            raise fault(FaultKind.DOUBLE_FREE, "the buffer was freed before", op)
        buffer.values[...], buffer.initialised[...], buffer.freed = np.nan, False, True
        self.scratchpads.remove(buffer)
        return ()

    @impl(KernelConstantOp)
    def run_constant(self, _interpreter: Interpreter, op: KernelConstantOp, _args: PythonValues) -> PythonValues:
        """Return a buffer of constant numbers, with zero padding."""
        tensor = device_tensor(op.result)
        return (send(tensor, known_numbers(op.value, tensor.shape, op), None, zero_padding=True),)

    @impl(ToDeviceOp)
    def run_to_device(self, _interpreter: Interpreter, op: ToDeviceOp, args: PythonValues) -> PythonValues:
        """Lay a host tensor out in sticks; `zero_padding` fills the rest with zeros."""
        (host,) = cast(tuple[HostArray], args)
        tensor = device_tensor(op.result)
        values = sent_integers(op, host.values, tensor, source_name(op))
        host = after_moves(op.moves, HostArray(values, host.defined))
        return (send(tensor, host.values, host.defined, zero_padding=op.zero_padding is not None),)

    @impl(FromDeviceOp)
    def run_from_device(self, _interpreter: Interpreter, op: FromDeviceOp, args: PythonValues) -> PythonValues:
        """Read the logical elements back.

        Raises:
            MachineFault: ``use-after-free``, ``unwritten-output``.
        """
        (buffer,) = cast(tuple[DeviceBuffer], args)
        if buffer.freed:
            raise fault(FaultKind.USE_AFTER_FREE, "the source was freed", op, tensor="the source")
        values, known = receive(buffer)
        check_known(known, op, "the source", FaultKind.UNWRITTEN_OUTPUT)
        return (HostArray.of(values, tensor_type(op.result.type).get_element_type()),)
