"""Execution of one SuperDSC on all its cores.

Where every operand's start addresses are affine in the slice numbers, and no two cores can write the same byte, all
cores run as one numpy operation. Otherwise each core runs by itself, and what the cores write is held against each
other byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.hardware_functions import Meaning, Reduction
from spyre_mlir.machine.memory.exact import ExactMemory, Ints, Memory
from spyre_mlir.machine.memory.operand_views import OperandLayout, TrackedArray
from spyre_mlir.machine.superdsc.bound_sizes import resolved
from spyre_mlir.machine.superdsc.compute import compute, keep, run_in_place
from spyre_mlir.machine.superdsc.core_places import settled
from spyre_mlir.machine.superdsc.core_rules.rules import run_special
from spyre_mlir.machine.superdsc.known_states import note
from spyre_mlir.machine.superdsc.launch_plans import LaunchPlan, LaunchPlans, make_plan
from spyre_mlir.machine.superdsc.races import require_disjoint, require_no_race
from spyre_mlir.machine.superdsc.result_checks import counted, require_integers, require_numbers
from spyre_mlir.machine.superdsc.stale_reads import History, require_tensor
from spyre_mlir.machine.superdsc.work import TileWork


def element_addresses(
    view: Descriptor, operand: int, core: int, symbols: Mapping[int, int] | None = None
) -> tuple[dict[str, Ints], Ints]:
    """Return the machine's addresses of every element of one operand on one core.

    Returns:
        The global index along each dim the operand has, and the byte address (in LX: within that core's own
        scratchpad), as flat arrays of one length.
    """
    return next(element_addresses_on(view, operand, (core,), symbols))


def element_addresses_on(
    view: Descriptor, operand: int, cores: Iterable[int], symbols: Mapping[int, int] | None = None
) -> Iterator[tuple[dict[str, Ints], Ints]]:
    """Return the same as `element_addresses`, for one core after another."""
    memory = ExactMemory()
    layout = OperandLayout(view, operand, memory, symbols)
    for core in cores:
        access = layout.core(core)
        addresses = access.addresses()
        if view.operands[operand].component == keys.LX:
            addresses = addresses - memory.scratchpad_address(core, 0)
        grids = np.indices(access.visible)
        coords = {
            dim.label: (grids[place] + view.core_slices[core][dim.label] * dim.per_core).reshape(-1)
            for place, dim in enumerate(view.dims)
            if dim.label in layout.labels
        }
        yield coords, addresses.reshape(-1)


def execute(
    view: Descriptor,
    memory: Memory,
    symbols: Mapping[int, int] | None = None,
    history: History | None = None,
    tensors: Sequence[str | None] = (),
    plans: LaunchPlans | None = None,
) -> None:
    """Run one descriptor: read every input, apply the function, write the output.

    Args:
        view: what the file says.
        memory: the regions the addresses lie in.
        symbols: byte address per symbol id.
        history: what earlier launches of the same bundle wrote.
        tensors: which tensor each operand is, where that is known.
        plans: those of earlier runs of the same program; takes this one's.

    Raises:
        MachineFault: the program misbehaved; memory may be partly written.
        UnsupportedError: the machine has no rule for what the descriptor asks.
    """
    memory.element, memory.step = memory.elements.get(view.index), memory.step + 1
    past = history or History()

    def make() -> LaunchPlan | None:
        sized = resolved(view, symbols)
        with np.errstate(all="ignore"), counted(sized, memory):
            special = run_special(sized, memory, symbols, past)
        return None if special else make_plan(sized, memory, symbols)

    try:
        plan = (LaunchPlans() if plans is None else plans).plan(view, memory, symbols, make)
        if plan is None:
            past.repeatable = False
        else:
            _run(plan, memory, past, tensors)
    finally:
        memory.element = None


def _run(plan: LaunchPlan, memory: Memory, past: History, tensors: Sequence[str | None]) -> None:
    if not memory.tracked:
        _run_untracked(plan, memory)
        return
    layouts, view, log = plan.layouts, plan.view, memory.log
    log.settle = lambda found: settled(found, layouts, memory)
    note(past, plan, memory)
    names = [*tensors, *[None] * (len(layouts) - len(tensors))]
    with np.errstate(all="ignore"), counted(view, memory):
        tiles = plan.by_core if plan.whole is None else (plan.whole,)
        for place, layout in enumerate(layouts[:-1]):
            if layout.operand.indirect is None:
                for tile in tiles:
                    past.require_own(memory, layout, tile.accesses[place], names[place])
        for tile in tiles:
            require_tensor(memory, tile.accesses[-1], names[len(layouts) - 1])
        if plan.work is None:
            _by_cores(plan, memory)
        else:
            _at_once(plan, plan.work, memory, past)
        require_numbers(tiles, memory)
        for done in tiles:
            require_integers(view, plan.meaning, done, memory)
    written = None if plan.whole is None else plan.whole.accesses[-1]
    past.wrote(memory, layouts[-1], written, names[len(layouts) - 1])


def _run_untracked(plan: LaunchPlan, memory: Memory) -> None:
    """The computation alone."""
    with np.errstate(all="ignore"):
        if plan.work is None:
            _by_cores(plan, memory)
        elif not run_in_place(plan.work, memory):
            keep(plan.work, compute(plan.work, memory), memory)


def _at_once(plan: LaunchPlan, work: TileWork, memory: Memory, past: History) -> None:
    """One pass for all cores."""
    doomed = [] if plan.picks or plan.in_place else past.doomed(memory, work.tile.accesses[-1])
    memory.log.why = lambda address: past.why(memory, address)
    if not run_in_place(work, memory):
        result = compute(work, memory)
        past.kept[memory.step] = result.written
        keep(work, result, memory)
    past.end(memory, doomed, plan.name)


def _by_cores(plan: LaunchPlan, memory: Memory) -> None:
    """One core after the other."""
    require_no_race([tile.accesses for tile in plan.by_core], memory.log)
    # Every core reads before any core writes: an in-place operation must not see its own results.
    works = [TileWork(plan.view, plan.meaning, tile) for tile in plan.by_core]
    parts = [compute(work, memory) for work in works]
    _write_cohorts(plan.view, plan.meaning, memory, list(zip(works, parts, strict=True)))


def _write_cohorts(
    view: Descriptor, meaning: Meaning, memory: Memory, parts: Sequence[tuple[TileWork, TrackedArray]]
) -> None:
    """Add up the partial results of cores that work on the same output elements, then write each cohort once."""
    cohorts: dict[tuple[int, ...], list[tuple[TileWork, TrackedArray]]] = {}
    kept = [place for place, dim in enumerate(view.dims) if dim.label in view.output.order]
    for work, part in parts:
        cohorts.setdefault(tuple(work.tile.origin[place] for place in kept), []).append((work, part))
    results: list[tuple[TileWork, TrackedArray]] = []
    for members in cohorts.values():
        first = members[0][0].tile.accesses[-1]
        if view.output.component == keys.LX and len(members) > 1:
            message = "a reduction over several cores with its result in LX: which core holds it is not published"
            raise UnsupportedError(message, where=str(first.place), hint="put the result in HBM")
        for tile in (work.tile for work, _ in members[1:]):
            if tile.accesses[-1].base != first.base:
                message = f"cores {members[0][0].tile.cores} and {tile.cores} share output elements but not an address"
                raise fault(FaultKind.COHORT_MISMATCH, message, tile.accesses[-1].place)
        results.append((members[0][0], _combined(view, meaning, memory, [part for _, part in members])))
    require_disjoint([work.tile.accesses[-1] for work, _ in results], memory.log)
    for work, tensor in results:
        keep(work, tensor, memory)


def _combined(view: Descriptor, meaning: Meaning, memory: Memory, parts: Sequence[TrackedArray]) -> TrackedArray:
    fold = meaning.fold if isinstance(meaning, Reduction) else np.add
    values, written = parts[0].values, parts[0].written
    for part in parts[1:]:
        # The sum so far goes from core to core; each adds its own part to what it receives.
        values = fold(memory.partial_sum(values, view.output.format), part.values)
        if part.written is not None:
            written = part.written if written is None else written & part.written
    return TrackedArray(values, written)


__all__ = ["element_addresses", "element_addresses_on", "execute"]
