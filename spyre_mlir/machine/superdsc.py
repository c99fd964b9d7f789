"""Runs one SuperDSC on all its cores.

Where every operand's start addresses are affine in the slice numbers, and no two cores can write the same byte, all
cores run as one numpy operation. Otherwise each core runs by itself, and what the cores write is held against each
other byte by byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spyre_mlir.dialects.superdsc.descriptor import Descriptor, IndirectKind
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.machine.constants import decode_constant
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.gather import gather
from spyre_mlir.machine.memory import ExactMemory, Floats, Ints, Memory
from spyre_mlir.machine.opfuncs import Lanes, Meaning, Movement, Pointwise, Reduction, meaning_of, rearranged
from spyre_mlir.machine.poison import contracted_written, folded_written, pointwise_written, require_lane_zero
from spyre_mlir.machine.races import require_disjoint, require_no_race
from spyre_mlir.machine.special import run_special
from spyre_mlir.machine.symbolic import resolved
from spyre_mlir.machine.views import Access, Layout, Tensor, slice_table


@dataclass(frozen=True)
class Tile:
    """The part of the iteration space one pass works on: one core's, or all.

    Args:
        cores: the cores it stands for.
        origin: first global index per iteration dim.
        accesses: one per operand.
    """

    cores: tuple[int, ...]
    origin: tuple[int, ...]
    accesses: tuple[Access, ...]


def element_addresses(
    view: Descriptor, operand: int, core: int, symbols: Mapping[int, int] | None = None
) -> tuple[dict[str, Ints], Ints]:
    """Where one core finds every element of one operand, as the machine computes it.

    Returns:
        The global index along each dim the operand has, and the byte address (in LX: within that core's own
        scratchpad), as flat arrays of one length.
    """
    memory = ExactMemory()
    layout = Layout(view, operand, memory, symbols)
    access = layout.core(core)
    addresses = access.addresses()
    if view.operands[operand].component == "lx":
        addresses = addresses - memory.scratchpad_address(core, 0)
    grids = np.indices(access.visible)
    coords = {
        dim.label: (grids[place] + view.core_slices[core][dim.label] * dim.per_core).reshape(-1)
        for place, dim in enumerate(view.dims)
        if dim.label in layout.labels
    }
    return coords, addresses.reshape(-1)


def execute(view: Descriptor, memory: Memory, symbols: Mapping[int, int] | None = None) -> None:
    """Run one descriptor: read every input, apply the function, write the output.

    Args:
        view: what the file says.
        memory: the regions the addresses lie in.
        symbols: byte address per symbol id.

    Raises:
        MachineFault: the program misbehaved; memory may be partly written.
        UnsupportedError: the machine has no rule for what the descriptor asks.
        InputError: the cores' work slices are not one core per slice.
    """
    view = resolved(view, symbols)
    if run_special(view, memory, symbols):
        return
    meaning = meaning_of(view.op_func)
    layouts = [Layout(view, index, memory, symbols) for index in range(len(view.operands))]
    for layout in layouts:
        layout.require_span()
    slices = slice_table(view)
    if len(slices) != view.cores or len(np.unique(slices, axis=0)) != view.cores:
        raise InputError(f"op {view.index}:{view.op_func_name}: {view.cores} slices for {len(slices)} cores")
    cut_sum = any(dim.split > 1 and dim.label not in view.output.order for dim in view.dims)
    tile = None if cut_sum and not memory.partial_sums_are_wide else _all_cores(view, layouts, slices)
    if tile is not None:
        require_no_race([tile.accesses])
        tile.accesses[-1].write(memory, _compute(view, meaning, tile, memory))
        return
    tiles = [_one_core(view, layouts, slices, core) for core in range(view.cores)]
    require_no_race([tile.accesses for tile in tiles])
    # Every core reads before any core writes: an in-place operation must not see its own results.
    parts = [_compute(view, meaning, tile, memory) for tile in tiles]
    _write_cohorts(view, meaning, memory, list(zip(tiles, parts, strict=True)))


def _all_cores(view: Descriptor, layouts: Sequence[Layout], slices: Ints) -> Tile | None:
    """One pass for all cores, where that is exactly what the cores do one by one."""
    accesses: list[Access] = []
    for layout in layouts:
        access = layout.whole(slices)
        if access is None:
            return None
        accesses.append(access)
    output = accesses[-1]
    lacks = [dim.label not in view.output.order for dim in view.dims]
    if not output.injective or any(lack and n != 1 for lack, n in zip(lacks, output.shape, strict=True)):
        return None
    return Tile(tuple(range(view.cores)), (0,) * len(view.dims), tuple(accesses))


def _one_core(view: Descriptor, layouts: Sequence[Layout], slices: Ints, core: int) -> Tile:
    origin = tuple(int(s) * dim.per_core for s, dim in zip(slices[core], view.dims, strict=True))
    return Tile((core,), origin, tuple(layout.core(core) for layout in layouts))


def _write_cohorts(view: Descriptor, meaning: Meaning, memory: Memory, parts: Sequence[tuple[Tile, Tensor]]) -> None:
    """Add up the partial results of cores that work on the same output elements, then write each cohort once."""
    cohorts: dict[tuple[int, ...], list[tuple[Tile, Tensor]]] = {}
    kept = [place for place, dim in enumerate(view.dims) if dim.label in view.output.order]
    for tile, part in parts:
        cohorts.setdefault(tuple(tile.origin[place] for place in kept), []).append((tile, part))
    results: list[tuple[Access, Tensor]] = []
    for members in cohorts.values():
        first = members[0][0].accesses[-1]
        if view.output.component == "lx" and len(members) > 1:
            message = "a reduction over several cores with its result in LX: which core holds it is not published"
            raise UnsupportedError(message, where=str(first.place), hint="put the result in HBM")
        for tile, _ in members[1:]:
            if tile.accesses[-1].base != first.base:
                message = f"cores {members[0][0].cores} and {tile.cores} share output elements but not an address"
                raise fault(FaultKind.COHORT_MISMATCH, message, tile.accesses[-1].place)
        results.append((first, _combined(view, meaning, memory, [part for _, part in members])))
    require_disjoint([access for access, _ in results])
    for access, tensor in results:
        access.write(memory, tensor)


def _combined(view: Descriptor, meaning: Meaning, memory: Memory, parts: Sequence[Tensor]) -> Tensor:
    fold = meaning.fold if isinstance(meaning, Reduction) else np.add
    values, written = parts[0].values, parts[0].written
    for part in parts[1:]:
        # The sum so far goes from core to core; each adds its own part to what it receives.
        values = fold(memory.partial_sum(values, view.output.format), part.values)
        if part.written is not None:
            written = part.written if written is None else written & part.written
    return Tensor(values, written)


def _compute(view: Descriptor, meaning: Meaning, tile: Tile, memory: Memory) -> Tensor:
    """Read the inputs of one tile and apply the function; the result has size-one axes for dims it lacks."""
    if any(op.indirect is not None and op.indirect.kind is IndirectKind.VALUE for op in view.operands):
        if not isinstance(meaning, Movement):
            raise UnsupportedError(f"a gather fused with {view.op_func}", where=str(tile.accesses[-1].place))
        return _shaped(gather(view, tile.accesses, tile.origin, memory), tile)
    accesses = tile.accesses[:-1]
    inputs = [_masked(view, tile, index, access.read(memory)) for index, access in enumerate(accesses)]
    if isinstance(meaning, Movement):
        return _shaped(_moved(view, meaning, inputs[0]), tile)
    checked = 1 if isinstance(meaning, Pointwise) and meaning.selects else len(inputs)
    for index in range(checked):
        require_lane_zero(view, index, accesses[index], inputs[index])
    if isinstance(meaning, Pointwise):
        return _shaped(_pointwise(view, meaning, inputs, tile), tile)
    if isinstance(meaning, Reduction):
        return _reduce(view, meaning, inputs[0], accesses[0])
    return _contract(view, inputs, tile)


def _moved(view: Descriptor, meaning: Movement, tensor: Tensor) -> Tensor:
    """The elements in the order they arrive in along the stick dim."""
    if meaning.lanes is Lanes.KEPT:
        return tensor
    axis = [dim.label for dim in view.dims].index(view.stick)
    narrow = max(operand.elements_per_stick for operand in view.operands)
    values = rearranged(tensor.values, axis, meaning.lanes, narrow)
    written = tensor.written
    return Tensor(values, None if written is None else rearranged(written, axis, meaning.lanes, narrow))


def _shaped(tensor: Tensor, tile: Tile) -> Tensor:
    """Broadcast a result to the output's axes."""
    shape = tile.accesses[-1].shape
    if any(n not in (1, m) for n, m in zip(tensor.values.shape, shape, strict=True)):
        message = f"a result of shape {tensor.values.shape} for an output of shape {shape}"
        raise UnsupportedError(message, where=str(tile.accesses[-1].place))
    written = tensor.written
    return Tensor(np.broadcast_to(tensor.values, shape), None if written is None else np.broadcast_to(written, shape))


def _masked(view: Descriptor, tile: Tile, index: int, tensor: Tensor) -> Tensor:
    """Replace what lies beyond the valid extents by the mask constant."""
    for place, dim in enumerate(view.dims):
        if dim.valid is None or view.mask_constant < 0 or dim.label not in view.operands[index].order:
            continue
        first = max(0, dim.valid - tile.origin[place])
        if first >= tensor.values.shape[place]:
            continue
        beyond = tuple(slice(first, None) if at == place else slice(None) for at in range(len(view.dims)))
        values = tensor.values.copy()
        values[beyond] = decode_constant(view.constants[view.mask_constant])
        written = None if tensor.written is None else tensor.written.copy()
        if written is not None:
            written[beyond] = True
        tensor = Tensor(values, written)
    return tensor


def _pointwise(view: Descriptor, meaning: Pointwise, inputs: Sequence[Tensor], tile: Tile) -> Tensor:
    constants = {constant.name: decode_constant(constant) for constant in view.constants}
    with np.errstate(all="ignore"):
        values = meaning.apply([tensor.values for tensor in inputs], constants)
    result = Tensor(values, pointwise_written(meaning, inputs))
    if meaning.selects and result.written is not None:
        require_lane_zero(view, len(inputs), tile.accesses[-1], _shaped(result, tile))
    return result


def _reduce(view: Descriptor, meaning: Reduction, tensor: Tensor, access: Access) -> Tensor:
    axes = tuple(place for place, dim in enumerate(view.dims) if dim.label not in view.output.order)
    written = folded_written(view, tensor, axes, access)
    values = np.abs(tensor.values) if meaning.absolute else tensor.values
    with np.errstate(all="ignore"):
        for axis in axes:
            values = meaning.fold.reduce(values, axis=axis, keepdims=True)
    if meaning.factor is not None:
        factors = {constant.name: decode_constant(constant) for constant in view.constants}
        values = values * factors[meaning.factor]
    return Tensor(values, written)


def _contract(view: Descriptor, inputs: Sequence[Tensor], tile: Tile) -> Tensor:
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
    written = contracted_written(view, inputs, places["k"], tile.accesses)
    a = _matrix(inputs[0].values, places["batch"], places["m"], places["k"], places["n"])
    b = _matrix(inputs[1].values, places["batch"], places["k"], places["n"], places["m"])
    order = [*places["batch"], *places["m"], *places["n"], *places["k"]]
    shape = tile.accesses[-1].shape
    product = np.matmul(a, b).reshape([shape[place] for place in order])
    return Tensor(np.transpose(product, np.argsort(order)), written)


def _matrix(
    values: Floats, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int], ones: Sequence[int]
) -> Floats:
    """Bring an operand to (batch, rows, columns); dims it lacks have size one and vanish."""
    shape = values.shape
    moved = np.transpose(values, [*batch, *rows, *columns, *ones])
    sizes = [int(np.prod([shape[place] for place in group], dtype=np.int64)) for group in (batch, rows, columns)]
    return moved.reshape(sizes)
