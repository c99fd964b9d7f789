"""Launches whose effect on the states of memory is known beforehand.

What a launch leaves written where follows from the states that it finds, and hardly ever from numbers. Where an earlier
launch found the same states, each check of them would come out as it did then; what remains is to compute, and to check
the numbers.

Decision: docs/decisions/0126-known-states.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import IndirectKind
from spyre_mlir.errors import FaultPlace, MachineFault
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.faults import Standing
from spyre_mlir.machine.hardware_functions import Pointwise
from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.memory.exact import Bools, Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, TrackedArray
from spyre_mlir.machine.memory.shadow import FORMAT_TAGS, everywhere, spread
from spyre_mlir.machine.superdsc.compute import compute, fetch, keep, run_in_place
from spyre_mlir.machine.superdsc.core_places import settled
from spyre_mlir.machine.superdsc.launch_plans import LaunchPlan
from spyre_mlir.machine.superdsc.poison import chosen_written
from spyre_mlir.machine.superdsc.result_checks import note_counts, open_settings, require_integers, require_numbers
from spyre_mlir.machine.superdsc.stale_reads import History
from spyre_mlir.machine.superdsc.work import Tile, TileWork


class StatesDiffer(Exception):
    """A number has decided otherwise what is written than in the run before."""


def note(past: History, plan: LaunchPlan, memory: Memory) -> None:
    """Note how the launch that is about to run depends on numbers in what it leaves written."""
    if plan.whole is None or not _tables_are_full(plan, plan.whole, memory):
        past.repeatable = False
        return
    if not isinstance(plan.meaning, Pointwise) or not plan.meaning.selects:
        return
    states = [access.written(memory) for access in plan.whole.accesses[:-1]]
    if all(state is None for state in states):
        return
    past.chosen[memory.step] = states
    if plan.view.mask_constant >= 0 and any(dim.valid is not None for dim in plan.view.dims):
        past.repeatable = False


def _tables_are_full(plan: LaunchPlan, tile: Tile, memory: Memory) -> bool:
    """Return whether no index can pick an element that was not written."""
    tables = (op.indirect is not None and op.indirect.kind is IndirectKind.VALUE for op in plan.view.operands)
    return all(_is_full(a, memory) for table, a in zip(tables, tile.accesses, strict=True) if table)


def _is_full(access: ByteAccess, memory: Memory) -> bool:
    """Return whether all of the region that an access lies in is written in its format."""
    states = memory.locate(access.low, access.high, access.span).states
    return everywhere(states.tags == FORMAT_TAGS[access.format]) and everywhere(states.known == STICK_BYTES)


@dataclass(frozen=True)
class KnownLaunch:
    """A launch of which it is known what it finds written, and what it leaves written.

    Attributes:
        plan: the launch.
        standing: what runs, for faults.
        kept: whether its result is computed as a whole and then stored; else it runs from memory to memory.
        written: of a result that is stored, which elements count as written; None for all.
        chosen: of operands of which the first chooses between the others, which elements are written.
    """

    plan: LaunchPlan
    standing: Standing
    kept: bool
    written: Bools | None
    chosen: Sequence[Bools | None] = ()

    def run(self, memory: Memory) -> None:
        """Compute, and check the numbers; the states of memory are neither asked nor changed.

        Raises:
            MachineFault: the numbers are wrong.
            StatesDiffer: they choose other elements, of which others are written.
        """
        plan, log, tally = self.plan, memory.log, memory.tally
        if plan.work is None:
            raise ValueError("only launches of all cores together are known")
        log.standing = self.standing
        log.settle = self._settled(memory)
        memory.element, memory.step = memory.elements.get(plan.view.index), memory.step + 1
        floats, integers, tally.largest = tally.overflows, tally.integers, 0.0
        self._compute(plan.work, memory)
        require_numbers((plan.work.tile,), memory)
        require_integers(plan.view, plan.meaning, plan.work.tile, memory)
        if isinstance(memory, DeviceMemory):
            for setting in self._settings:
                log.depends.setdefault(setting, set()).add(plan.name)
        if (tally.overflows, tally.integers) != (floats, integers):
            note_counts(plan.view, memory, floats, integers)

    @cached_property
    def _settings(self) -> tuple[str, ...]:
        return tuple(open_settings(self.plan.view))

    def _settled(self, memory: Memory) -> Callable[[MachineFault], FaultPlace]:
        layouts = self.plan.layouts
        return lambda found: settled(found, layouts, memory)

    def _compute(self, work: TileWork, memory: Memory) -> None:
        if self.chosen:
            self._require_choice(work.tile, memory)
        if self.kept:
            keep(work, TrackedArray(compute(work, memory).values, self.written), memory)
        else:
            run_in_place(work, memory)

    def _require_choice(self, tile: Tile, memory: Memory) -> None:
        """Require that the first operand chooses as many written elements as before, at the same places."""
        condition = tile.frame.joined(fetch(tile, 0, memory).values)
        left = chosen_written(condition, self.chosen)
        if left is None or self.written is None:
            same = left is None or left.all()
        else:
            same = np.array_equal(spread(left, tile.accesses[-1].shape), self.written)
        if not same:
            raise StatesDiffer


__all__ = ["KnownLaunch", "StatesDiffer", "note"]
