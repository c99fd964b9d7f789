"""Execution of one SuperDSC on all its cores.

Where every operand's start addresses are affine in the slice numbers, and no two cores can write the same byte, all
cores run as one numpy operation. Otherwise each core runs by itself, and what the cores write is held against each
other byte by byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, Place, fault
from spyre_mlir.machine.hardware_functions import Meaning, Reduction, meaning_of
from spyre_mlir.machine.memory.exact import Bools, ExactMemory, Ints, Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout, TrackedArray, slice_table
from spyre_mlir.machine.superdsc.bound_sizes import resolved
from spyre_mlir.machine.superdsc.compute import Tile, compute, keep, run_in_place
from spyre_mlir.machine.superdsc.core_places import settled
from spyre_mlir.machine.superdsc.core_rules import run_special
from spyre_mlir.machine.superdsc.gather import share_table
from spyre_mlir.machine.superdsc.races import require_disjoint, require_no_race
from spyre_mlir.machine.superdsc.result_checks import counted, require_integers, require_numbers
from spyre_mlir.machine.superdsc.stale_reads import History, require_tensor


def element_addresses(
    view: Descriptor, operand: int, core: int, symbols: Mapping[int, int] | None = None
) -> tuple[dict[str, Ints], Ints]:
    """Return the machine's addresses of every element of one operand on one core.

    Returns:
        The global index along each dim the operand has, and the byte address (in LX: within that core's own
        scratchpad), as flat arrays of one length.
    """
    memory = ExactMemory()
    layout = OperandLayout(view, operand, memory, symbols)
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


def execute(
    view: Descriptor,
    memory: Memory,
    symbols: Mapping[int, int] | None = None,
    history: History | None = None,
    tensors: Sequence[str | None] = (),
) -> None:
    """Run one descriptor: read every input, apply the function, write the output.

    Args:
        view: what the file says.
        memory: the regions the addresses lie in.
        symbols: byte address per symbol id.
        history: what earlier launches of the same bundle wrote.
        tensors: which tensor each operand is, where that is known.

    Raises:
        MachineFault: the program misbehaved; memory may be partly written.
        UnsupportedError: the machine has no rule for what the descriptor asks.
    """
    memory.element = memory.elements.get(view.index)
    try:
        _execute(resolved(view, symbols), memory, symbols, history or History(), tensors)
    finally:
        memory.element = None


def _execute(
    view: Descriptor, memory: Memory, symbols: Mapping[int, int] | None, past: History, tensors: Sequence[str | None]
) -> None:
    memory.step += 1
    with np.errstate(all="ignore"), counted(view, memory):
        special = run_special(view, memory, symbols, past)
    if special:
        return
    meaning = meaning_of(view.op_func)
    layouts = [OperandLayout(view, index, memory, symbols) for index in range(len(view.operands))]
    memory.log.settle = lambda found: settled(found, layouts, memory)
    slices = _schedule(view, memory)
    for layout in layouts:
        share_table(layout)
        layout.require_span()
    names = [*tensors, *[None] * (len(layouts) - len(tensors))]
    cut_sum = any(dim.split > 1 and dim.label not in view.output.order for dim in view.dims)
    tile = None if cut_sum and not memory.partial_sums_are_wide else _all_cores(view, layouts, slices)
    with np.errstate(all="ignore"), counted(view, memory):
        if tile is None:
            for layout, name in zip(layouts[:-1], names, strict=False):
                for core in range(view.cores if layout.operand.indirect is None else 0):
                    past.require_own(memory, layout, layout.core(core), slices, name)
            for core in range(view.cores):
                require_tensor(memory, layouts[-1].core(core), names[len(layouts) - 1])
            tiles = _by_cores(view, meaning, memory, layouts, slices)
        else:
            cores = range(view.cores)
            require_no_race([tile.accesses], memory.log, lambda: [[x.core(core) for x in layouts] for core in cores])
            for layout, access, name in zip(layouts[:-1], tile.accesses, names, strict=False):
                if layout.operand.indirect is None:
                    past.require_own(memory, layout, access, slices, name)
            require_tensor(memory, tile.accesses[-1], names[len(layouts) - 1])
            _at_once(view, meaning, memory, tile, past)
            tiles = [tile]
        require_numbers(tiles, memory)
        for done in tiles:
            require_integers(view, meaning, done, memory)
    past.wrote(memory, layouts[-1], None if tile is None else tile.accesses[-1], slices, names[len(layouts) - 1])


def _schedule(view: Descriptor, memory: Memory) -> Ints:
    """Return the slices of every core.

    Raises:
        MachineFault: ``bad-schedule``.
    """
    slices = slice_table(view)
    name = f"{view.index}:{view.op_func_name}"
    if len(slices) != view.cores or view.cores > memory.spec.cores_per_card:
        message = f"{len(slices)} cores for {view.cores} slices, on a card of {memory.spec.cores_per_card} cores"
        raise fault(FaultKind.BAD_SCHEDULE, message, Place(op=name))
    seen: dict[bytes, int] = {}
    splits = np.asarray([dim.split for dim in view.dims], dtype=np.int64)
    outside: Bools = np.any((slices < 0) | (slices >= splits), axis=1)
    for core, row in enumerate(slices):
        other = seen.setdefault(row.tobytes(), core)
        if outside[core] or other != core:
            text = "a slice that is not there" if outside[core] else f"the slices of core {other}"
            message = f"core {core} works on {text}: {dict(view.core_slices[core])}"
            raise fault(FaultKind.BAD_SCHEDULE, message, Place(op=name, core=core))
    return slices


def _at_once(view: Descriptor, meaning: Meaning, memory: Memory, tile: Tile, past: History) -> None:
    """One pass for all cores."""
    picks = any(operand.indirect is not None for operand in view.operands)
    doomed = [] if picks or _in_place(tile) else past.doomed(memory, tile.accesses[-1])
    memory.log.why = lambda address: past.why(memory, address)
    if not run_in_place(view, meaning, tile, memory):
        keep(tile, compute(view, meaning, tile, memory), memory)
    past.end(memory, doomed, f"{view.index}:{view.op_func_name}")


def _by_cores(
    view: Descriptor, meaning: Meaning, memory: Memory, layouts: Sequence[OperandLayout], slices: Ints
) -> list[Tile]:
    """One core after the other; returns what each did."""
    tiles = [_one_core(view, layouts, slices, core) for core in range(view.cores)]
    require_no_race([tile.accesses for tile in tiles], memory.log)
    # Every core reads before any core writes: an in-place operation must not see its own results.
    parts = [compute(view, meaning, tile, memory) for tile in tiles]
    _write_cohorts(view, meaning, memory, list(zip(tiles, parts, strict=True)))
    return tiles


def _all_cores(view: Descriptor, layouts: Sequence[OperandLayout], slices: Ints) -> Tile | None:
    """One pass for all cores, where that is exactly what the cores do one by one."""
    accesses: list[ByteAccess] = []
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


def _one_core(view: Descriptor, layouts: Sequence[OperandLayout], slices: Ints, core: int) -> Tile:
    origin = tuple(int(s) * dim.per_core for s, dim in zip(slices[core], view.dims, strict=True))
    return Tile((core,), origin, tuple(layout.core(core) for layout in layouts))


def _in_place(tile: Tile) -> bool:
    """Return whether an operation writes exactly where it reads: it modifies existing tensors and makes none."""
    *inputs, output = tile.accesses
    return any((a.base, a.axes) == (output.base, output.axes) for a in inputs)


def _write_cohorts(
    view: Descriptor, meaning: Meaning, memory: Memory, parts: Sequence[tuple[Tile, TrackedArray]]
) -> None:
    """Add up the partial results of cores that work on the same output elements, then write each cohort once."""
    cohorts: dict[tuple[int, ...], list[tuple[Tile, TrackedArray]]] = {}
    kept = [place for place, dim in enumerate(view.dims) if dim.label in view.output.order]
    for tile, part in parts:
        cohorts.setdefault(tuple(tile.origin[place] for place in kept), []).append((tile, part))
    results: list[tuple[Tile, TrackedArray]] = []
    for members in cohorts.values():
        first = members[0][0].accesses[-1]
        if view.output.component == "lx" and len(members) > 1:
            message = "a reduction over several cores with its result in LX: which core holds it is not published"
            raise UnsupportedError(message, where=str(first.place), hint="put the result in HBM")
        for tile, _ in members[1:]:
            if tile.accesses[-1].base != first.base:
                message = f"cores {members[0][0].cores} and {tile.cores} share output elements but not an address"
                raise fault(FaultKind.COHORT_MISMATCH, message, tile.accesses[-1].place)
        results.append((members[0][0], _combined(view, meaning, memory, [part for _, part in members])))
    require_disjoint([tile.accesses[-1] for tile, _ in results], memory.log)
    for tile, tensor in results:
        keep(tile, tensor, memory)


def _combined(view: Descriptor, meaning: Meaning, memory: Memory, parts: Sequence[TrackedArray]) -> TrackedArray:
    fold = meaning.fold if isinstance(meaning, Reduction) else np.add
    values, written = parts[0].values, parts[0].written
    for part in parts[1:]:
        # The sum so far goes from core to core; each adds its own part to what it receives.
        values = fold(memory.partial_sum(values, view.output.format), part.values)
        if part.written is not None:
            written = part.written if written is None else written & part.written
    return TrackedArray(values, written)


__all__ = ["element_addresses", "execute"]
