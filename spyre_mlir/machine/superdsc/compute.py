"""Computation of one SuperDSC, on views of memory, for one core or for all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, IndirectKind
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw import dl16, fp8
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.hardware_functions import Meaning, Movement, Pointwise, Reduction, rearranged
from spyre_mlir.machine.memory.exact import Bools, Floats, Memory
from spyre_mlir.machine.memory.frames import Frame, blocks
from spyre_mlir.machine.memory.operand_views import ByteAccess, TrackedArray
from spyre_mlir.machine.memory.shadow import spread
from spyre_mlir.machine.superdsc.constants import decode_constant, mask_value
from spyre_mlir.machine.superdsc.gather import gather
from spyre_mlir.machine.superdsc.poison import contracted_written, folded_written, pointwise_written, require_lane_zero
from spyre_mlir.ops.function_facts import LaneOrder


@dataclass(frozen=True)
class Tile:
    """The part of the iteration space of one evaluation: one core's, or all.

    Args:
        cores: the cores it stands for.
        origin: first global index per iteration dim.
        accesses: one per operand.
    """

    cores: tuple[int, ...]
    origin: tuple[int, ...]
    accesses: tuple[ByteAccess, ...]

    @cached_property
    def frame(self) -> Frame:
        """The axes of its operands."""
        return Frame.of(self.accesses)

    @property
    def plain(self) -> Tile:
        """Return the same tile with one axis per iteration dim."""
        return self if self.frame.dense else PlainTile(self.cores, self.origin, self.accesses)


@dataclass(frozen=True)
class PlainTile(Tile):
    """A tile whose operands have one axis per iteration dim."""

    @cached_property
    def frame(self) -> Frame:
        """The axes of its operands."""
        return Frame.plain(self.accesses)


def keep(tile: Tile, tensor: TrackedArray, memory: Memory) -> None:
    """Write a result; values in lanes that were never written do not count as overflows.

    Raises:
        MachineFault: out of bounds.
    """
    before = replace(memory.tally)
    access, frame = tile.accesses[-1], tile.frame
    if frame.dense:
        access.write(memory, tensor)
    else:
        access.mark(memory, tensor.written)
        for (part,), target in blocks([tensor.values], access.view(memory, frame)):
            memory.put(target, part, access.format)
    if tensor.written is not None and memory.tally.overflows > before.overflows:
        sizes = np.abs(frame.joined(tensor.values))
        beyond = tensor.written & np.isfinite(sizes) & (sizes >= dl16.BEYOND_LARGEST)
        memory.tally.overflows, memory.tally.largest = before.overflows, before.largest
        memory.tally.beyond(sizes[beyond])


def fetch(tile: Tile, index: int, memory: Memory) -> TrackedArray:
    """Return an operand along the axes of the tile's frame; a view of memory where possible.

    Raises:
        MachineFault: out of bounds, or an element was last written in another format.
    """
    access, frame = tile.accesses[index], tile.frame
    if frame.dense:
        return access.read(memory)
    written = access.written(memory)
    return TrackedArray(memory.numbers(access.view(memory, frame), access.format), written)


def run_in_place(view: Descriptor, meaning: Meaning, tile: Tile, memory: Memory) -> bool:
    """Run an element-wise function from memory to memory, part by part; return False if it cannot run so.

    Raises:
        MachineFault: the program misbehaved.
    """
    plain = view.mask_constant < 0 and all(dim.valid is None for dim in view.dims)
    moves = isinstance(meaning, Movement) and meaning.lanes is LaneOrder.KEPT
    if not plain or tile.frame.dense or not (moves or isinstance(meaning, Pointwise)):
        return False
    if any(operand.indirect is not None for operand in view.operands):
        return False
    inputs = tile.accesses[:1] if moves else tile.accesses[:-1]
    states = [access.written(memory) for access in inputs]
    shape = tuple(max(sizes) for sizes in zip(*(access.shape for access in inputs), strict=True))
    if any(state is not None for state in states) or any(
        n not in (1, m) for n, m in zip(shape, tile.accesses[-1].shape, strict=True)
    ):
        return False
    output = tile.accesses[-1]
    output.mark(memory, None)
    views = [access.view(memory, tile.frame) for access in inputs]
    constants = constants_of(view)
    for parts, target in blocks(views, output.view(memory, tile.frame)):
        values = [memory.numbers(part, access.format) for part, access in zip(parts, inputs, strict=True)]
        result = meaning.apply(values, constants) if isinstance(meaning, Pointwise) else values[0]
        memory.put(target, spread(result, target.shape), output.format)
    return True


def constants_of(view: Descriptor) -> dict[str, float]:
    """Return the values of an operation's constants by name."""
    return {constant.name: decode_constant(constant) for constant in view.constants}


def compute(view: Descriptor, meaning: Meaning, tile: Tile, memory: Memory) -> TrackedArray:
    """Read the inputs of one tile and apply the function; the result has size-one axes for dims it lacks."""
    if any(op.indirect is not None and op.indirect.kind is IndirectKind.VALUE for op in view.operands):
        if not isinstance(meaning, Movement):
            raise UnsupportedError(f"a gather fused with {view.op_func}", where=str(tile.accesses[-1].place))
        picked = gather(view, tile.accesses, tile.origin, memory)
        return _shaped(TrackedArray(tile.frame.cut(picked.values), picked.written), tile)
    accesses = tile.accesses[:-1]
    inputs = [_masked(view, tile, index, memory) for index in range(len(accesses))]
    if isinstance(meaning, Movement):
        return _shaped(_moved(view, meaning, inputs[0], tile.frame), tile)
    checked = 1 if isinstance(meaning, Pointwise) and meaning.selects else len(inputs)
    for index in range(checked):
        require_lane_zero(view, index, accesses[index], inputs[index], memory.log)
    if isinstance(meaning, Pointwise):
        return _shaped(_pointwise(view, meaning, inputs, tile, memory.log), tile)
    if isinstance(meaning, Reduction):
        return _reduce(view, meaning, inputs[0], tile, memory.log)
    if meaning.packed:
        left = view.operands[0]
        axis = next(place for place, dim in enumerate(view.dims) if dim.label == left.stick)
        inputs[0] = _in_order(inputs[0], tile.frame, axis, LaneOrder.WIDENED, left.elements_per_stick)
    return _contract(view, inputs, tile, memory.log)


def _moved(view: Descriptor, meaning: Movement, tensor: TrackedArray, frame: Frame) -> TrackedArray:
    """The elements in the order they arrive in along the stick dim."""
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


def _shaped(tensor: TrackedArray, tile: Tile) -> TrackedArray:
    """Broadcast a result to the output's axes."""
    output, frame = tile.accesses[-1], tile.frame
    shape = [
        n
        for size, counts in zip(output.shape, frame.counts, strict=True)
        for n in (counts if size != 1 else [1] * len(counts))
    ]
    if any(n not in (1, m) for n, m in zip(tensor.values.shape, shape, strict=True)):
        message = f"a result of shape {frame.joined(tensor.values).shape} for an output of shape {output.shape}"
        raise UnsupportedError(message, where=str(output.place))
    written = tensor.written
    return TrackedArray(spread(tensor.values, shape), None if written is None else spread(written, output.shape))


def _masked(view: Descriptor, tile: Tile, index: int, memory: Memory) -> TrackedArray:
    """Read an operand; what lies beyond the valid extents is the mask constant."""
    tensor = fetch(tile, index, memory)
    for place, dim in enumerate(view.dims):
        if dim.valid is None or view.mask_constant < 0 or dim.label not in view.operands[index].order:
            continue
        first = max(0, dim.valid - tile.origin[place])
        values = tile.frame.joined(tensor.values)
        if first >= values.shape[place]:
            continue
        beyond = tuple(slice(first, None) if at == place else slice(None) for at in range(len(view.dims)))
        values = values.copy()
        values[beyond] = mask_value(view, unbounded=memory.unbounded)
        written = tensor.written
        if written is not None:
            sizes = [n if at == place else m for at, (n, m) in enumerate(zip(values.shape, written.shape, strict=True))]
            written = spread(written, sizes).copy()
            written[beyond] = True
        tensor = TrackedArray(tile.frame.cut(values), written)
    return tensor


def _pointwise(
    view: Descriptor, meaning: Pointwise, inputs: Sequence[TrackedArray], tile: Tile, log: FaultLog
) -> TrackedArray:
    values = meaning.apply([tensor.values for tensor in inputs], constants_of(view))
    result = TrackedArray(values, _combined_states(meaning, inputs, tile.frame))
    if meaning.selects and result.written is not None:
        require_lane_zero(view, len(inputs), tile.accesses[-1], _shaped(result, tile), log)
    return result


def _combined_states(meaning: Pointwise, inputs: Sequence[TrackedArray], frame: Frame) -> Bools | None:
    if meaning.selects:
        inputs = [TrackedArray(frame.joined(tensor.values), tensor.written) for tensor in inputs]
    return pointwise_written(meaning, inputs)


def _reduce(view: Descriptor, meaning: Reduction, tensor: TrackedArray, tile: Tile, log: FaultLog) -> TrackedArray:
    places = [place for place, dim in enumerate(view.dims) if dim.label not in view.output.order]
    written = folded_written(view, tensor, places, tile.accesses[0], log)
    values = np.abs(tensor.values) if meaning.absolute else tensor.values
    # The outermost first: neighbours stay neighbours for as long as there is much to fold.
    for axis in sorted(tile.frame.axes_of(places), key=lambda a: -abs(tensor.values.strides[a])):
        if values.shape[axis] != 1:
            values = meaning.fold.reduce(values, axis=axis, keepdims=True)
    if meaning.factor is not None:
        values = values * constants_of(view)[meaning.factor]
    return TrackedArray(values, written)


def _contract(view: Descriptor, inputs: Sequence[TrackedArray], tile: Tile, log: FaultLog) -> TrackedArray:
    """Sum of products as one batched matrix product, dims sorted by which operands have them."""
    left, right = (set(operand.order) for operand in view.operands[:2])
    kept = set(view.output.order)
    places: dict[str, list[int]] = {name: [] for name in ("batch", "m", "n", "k")}
    for place, dim in enumerate(view.dims):
        in_left, in_right = dim.label in left, dim.label in right
        if dim.label not in kept:
            places["k"].append(place)
        elif in_left and in_right:
            places["batch"].append(place)
        else:
            places["m" if in_left else "n"].append(place)
    written = contracted_written(view, inputs, places["k"], tile.accesses, log)
    axes = {name: tile.frame.axes_of(own) for name, own in places.items()}
    a = _matrix(inputs[0].values, axes["batch"], axes["m"], axes["k"], axes["n"])
    b = _matrix(inputs[1].values, axes["batch"], axes["k"], axes["n"], axes["m"])
    order = [*axes["batch"], *axes["m"], *axes["n"], *axes["k"]]
    counts = [count for own in tile.frame.counts for count in own]
    shape = [1 if axis in axes["k"] else counts[axis] for axis in order]
    product = np.matmul(a, b).reshape(shape)
    return TrackedArray(np.transpose(product, np.argsort(order)), written)


def _matrix(
    values: Floats, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int], ones: Sequence[int]
) -> Floats:
    """Bring an operand to (batch, rows, columns); axes it lacks have size one and vanish."""
    shape = values.shape
    moved = np.transpose(values, [*batch, *rows, *columns, *ones])
    sizes = [prod(shape[axis] for axis in group) for group in (batch, rows, columns)]
    return moved.reshape(sizes)
