"""Computation of one SuperDSC, on views of memory, for one core or for all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.number_formats import dl16, fp8
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.hardware_functions import Movement, Pointwise, Reduction, rearranged
from spyre_mlir.machine.memory.exact import Bools, Floats, Memory
from spyre_mlir.machine.memory.frames import Frame, blocks
from spyre_mlir.machine.memory.operand_views import TrackedArray
from spyre_mlir.machine.memory.shadow import spread
from spyre_mlir.machine.superdsc.constants import mask_value
from spyre_mlir.machine.superdsc.core_rules.gather import gather
from spyre_mlir.machine.superdsc.poison import contracted_written, folded_written, pointwise_written, require_lane_zero
from spyre_mlir.machine.superdsc.work import ROOM, KeptMatrix, Tile, TileWork
from spyre_mlir.ops.function_facts import LaneOrder

# Memory that stays costs more than a copy to memory that is used again, and many programs are called once or twice.
_KEPT_COPY = 3


def keep(work: TileWork, tensor: TrackedArray, memory: Memory) -> None:
    """Write a result; values in lanes that were never written do not count as overflows.

    Raises:
        MachineFault: out of bounds.
    """
    tile, tally = work.tile, memory.tally
    overflows, largest = tally.overflows, tally.largest
    access, frame = tile.accesses[-1], tile.frame
    if frame.dense:
        access.write(memory, tensor)
    else:
        access.mark(memory, tensor.written)
        put = memory.move if work.copies else memory.put
        for (part,), target in blocks([tensor.values], tile.framed[-1].elements(memory)):
            put(target, part, access.format)
    if tensor.written is not None and tally.overflows > overflows:
        sizes = np.abs(frame.joined(tensor.values))
        beyond = tensor.written & np.isfinite(sizes) & (sizes >= dl16.BEYOND_LARGEST)
        tally.overflows, tally.largest = overflows, largest
        tally.beyond(sizes[beyond])


def fetch(tile: Tile, index: int, memory: Memory) -> TrackedArray:
    """Return an operand along the axes of the tile's frame; a view of memory where possible.

    Raises:
        MachineFault: out of bounds, or an element was last written in another format.
    """
    access = tile.accesses[index]
    if tile.frame.dense:
        return access.read(memory)
    written = access.written(memory) if memory.tracked else None
    return TrackedArray(memory.numbers(tile.framed[index].elements(memory), access.format), written)


def run_in_place(work: TileWork, memory: Memory) -> bool:
    """Run an element-wise function from memory to memory, part by part; return False if it cannot run so.

    Raises:
        MachineFault: the program misbehaved.
    """
    if not work.streams:
        return False
    accesses, framed = work.tile.accesses, work.tile.framed
    if memory.tracked:
        states = [accesses[n].written(memory) for n in work.inputs]  # all of them, as each may find a fault
        if any(state is not None for state in states):
            return False
    output = accesses[-1]
    output.mark(memory, None)
    put, numbers = memory.move if work.copies else memory.put, memory.numbers
    formats = [accesses[n].format for n in work.inputs]
    views = [framed[n].elements(memory) for n in work.inputs]
    for parts, target in blocks(views, framed[-1].elements(memory)):
        values = [numbers(part, name) for part, name in zip(parts, formats, strict=True)]
        result = work.meaning.apply(values, work.constants) if isinstance(work.meaning, Pointwise) else values[0]
        put(target, spread(result, target.shape), output.format)
    return True


def compute(work: TileWork, memory: Memory) -> TrackedArray:
    """Read the inputs of one tile and apply the function; the result has size-one axes for dims it lacks."""
    view, meaning, tile = work.view, work.meaning, work.tile
    accesses = tile.accesses[:-1]
    if work.gathers:
        if not isinstance(meaning, Movement):
            raise UnsupportedError(f"a gather fused with {view.op_func}", where=str(tile.accesses[-1].place))
        picked = gather(view, tile.accesses, tile.origin, memory)
        return _shaped(TrackedArray(tile.frame.cut(picked.values), picked.written), work)
    inputs = [_masked(work, index, memory) for index in range(len(accesses))]
    if isinstance(meaning, Movement):
        return _shaped(_moved(work, meaning, inputs[0]), work)
    checked = 1 if isinstance(meaning, Pointwise) and meaning.selects else len(inputs)
    for index in range(checked):
        require_lane_zero(view, index, accesses[index], inputs[index], memory.log)
    if isinstance(meaning, Pointwise):
        return _shaped(_pointwise(work, meaning, inputs, memory.log), work)
    if isinstance(meaning, Reduction):
        return _reduce(work, meaning, inputs[0], memory.log)
    if work.packed:
        left = view.operands[0]
        axis = next(place for place, dim in enumerate(view.dims) if dim.label == left.stick)
        inputs[0] = _in_order(inputs[0], tile.frame, axis, LaneOrder.WIDENED, left.elements_per_stick)
    return _contract(work, inputs, memory)


def _moved(work: TileWork, meaning: Movement, tensor: TrackedArray) -> TrackedArray:
    """The elements in the order they arrive in along the stick dim."""
    view, frame = work.view, work.tile.frame
    if meaning.lanes is LaneOrder.KEPT:
        return tensor
    axis = [dim.label for dim in view.dims].index(view.stick)
    narrow = max(operand.elements_per_stick for operand in view.operands)
    if meaning.rounded:
        tensor = TrackedArray(fp8.round_trip(tensor.values), tensor.written)
    return _in_order(tensor, frame, axis, meaning.lanes, narrow)


def _in_order(tensor: TrackedArray, frame: Frame, axis: int, lanes: LaneOrder, narrow: int) -> TrackedArray:
    """The elements along a dim as a change of width orders them."""
    joined = frame.joined(tensor.values)
    values = frame.cut(rearranged(joined, axis, lanes, narrow))
    if tensor.written is None:
        return TrackedArray(values)
    return TrackedArray(values, rearranged(spread(tensor.written, joined.shape), axis, lanes, narrow))


def _shaped(tensor: TrackedArray, work: TileWork) -> TrackedArray:
    """Broadcast a result to the output's axes."""
    output, values, written = work.tile.accesses[-1], tensor.values, tensor.written
    if values.shape != work.shape:
        if any(n not in (1, m) for n, m in zip(values.shape, work.shape, strict=True)):
            message = f"a result of shape {work.tile.frame.joined(values).shape} for an output of shape {output.shape}"
            raise UnsupportedError(message, where=str(output.place))
        values = np.broadcast_to(values, work.shape)
    return TrackedArray(values, None if written is None else spread(written, output.shape))


def _masked(work: TileWork, index: int, memory: Memory) -> TrackedArray:
    """Read an operand; what lies beyond the valid extents is the mask constant."""
    tile, tensor = work.tile, fetch(work.tile, index, memory)
    for place, first in work.masked[index]:
        values = tile.frame.joined(tensor.values)
        if first >= values.shape[place]:
            continue
        beyond = tuple(slice(first, None) if at == place else slice(None) for at in range(len(work.view.dims)))
        values = values.copy()
        values[beyond] = mask_value(work.view, unbounded=memory.unbounded)
        written = tensor.written
        if written is not None:
            sizes = [n if at == place else m for at, (n, m) in enumerate(zip(values.shape, written.shape, strict=True))]
            written = spread(written, sizes).copy()
            written[beyond] = True
        tensor = TrackedArray(tile.frame.cut(values), written)
    return tensor


def _pointwise(work: TileWork, meaning: Pointwise, inputs: Sequence[TrackedArray], log: FaultLog) -> TrackedArray:
    values = meaning.apply([tensor.values for tensor in inputs], work.constants)
    if all(tensor.written is None for tensor in inputs):
        return TrackedArray(values)
    result = TrackedArray(values, _combined_states(meaning, inputs, work.tile.frame))
    if meaning.selects:
        require_lane_zero(work.view, len(inputs), work.tile.accesses[-1], _shaped(result, work), log)
    return result


def _combined_states(meaning: Pointwise, inputs: Sequence[TrackedArray], frame: Frame) -> Bools | None:
    if meaning.selects:
        inputs = [TrackedArray(frame.joined(tensor.values), tensor.written) for tensor in inputs]
    return pointwise_written(meaning, inputs)


def _reduce(work: TileWork, meaning: Reduction, tensor: TrackedArray, log: FaultLog) -> TrackedArray:
    written = folded_written(work.view, tensor, work.summed, work.tile.accesses[0], log)
    values = np.abs(tensor.values) if meaning.absolute else tensor.values
    # The outermost first: neighbours stay neighbours for as long as there is much to fold.
    for axis in sorted(work.folded, key=lambda a: -abs(tensor.values.strides[a])):
        if values.shape[axis] != 1:
            values = meaning.fold.reduce(values, axis=axis, keepdims=True)
    if meaning.factor is not None:
        values = values * work.constants[meaning.factor]
    return TrackedArray(values, written)


def _contract(work: TileWork, inputs: Sequence[TrackedArray], memory: Memory) -> TrackedArray:
    """Sum of products as one batched matrix product, dims sorted by which operands have them."""
    axes = work.contracted
    written = contracted_written(work.view, inputs, axes.summed, work.tile.accesses, memory.log)
    a = _operand(work, 0, inputs[0].values, memory, (axes.batch, axes.rows, axes.inner, axes.columns))
    b = _operand(work, 1, inputs[1].values, memory, (axes.batch, axes.inner, axes.columns, axes.rows))
    return TrackedArray(np.matmul(a, b).reshape(axes.shape).transpose(axes.order), written)


def _operand(work: TileWork, index: int, values: Floats, memory: Memory, groups: Sequence[Sequence[int]]) -> Floats:
    """An operand as a matrix; the third copy of a weight is kept, as long as the card has the same contents for it."""
    access, known = work.tile.accesses[index], work.matrices.get(index)
    region = memory.locate(access.low, access.high, access.span)
    # Contents that others share are never written to: whoever writes has a copy of its own from then on.
    lasts = region.shared and not work.masked[index] and not (work.packed and index == 0)
    if lasts and known is not None and known.fits(region.cells, values):
        return known.matrix
    made = _matrix(values, *groups)
    if lasts and not np.may_share_memory(made, region.cells):
        work.copied[index] = copies = work.copied.get(index, 0) + 1
        if copies >= _KEPT_COPY and ROOM.keep(made):
            work.matrices[index] = KeptMatrix.of(region.cells, made)
    return made


def _matrix(
    values: Floats, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int], ones: Sequence[int]
) -> Floats:
    """Bring an operand to (batch, rows, columns); axes it lacks have size one and vanish."""
    shape = values.shape
    moved = np.transpose(values, [*batch, *rows, *columns, *ones])
    sizes = [prod(shape[axis] for axis in group) for group in (batch, rows, columns)]
    return moved.reshape(sizes)
