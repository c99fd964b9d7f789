"""Runs of a bundle function whose states of memory are known: they compute, and need not look what is written where.

A function has no branches, and what its launches leave written follows from what they find written. So a run that
begins with the states of an earlier one, at the same addresses, ends with the same states, and no check of a state
fails in it that did not fail then. Runs that met a fault, or in which a number decided what is written, are not kept.

Decision: docs/decisions/0126-known-states.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spyre_mlir.errors import MachineFault
from spyre_mlir.machine.bundle.launch_trace import BoundLaunch, PoolAllocation, Trace
from spyre_mlir.machine.memory.exact import Bools, Ints, Memory
from spyre_mlir.machine.memory.region import MemoryRegion
from spyre_mlir.machine.memory.shadow import ShadowMemory
from spyre_mlir.machine.superdsc.known_states import KnownLaunch, StatesDiffer
from spyre_mlir.machine.superdsc.launch_plans import LaunchPlan, LaunchPlans
from spyre_mlir.machine.superdsc.stale_reads import History


@dataclass(frozen=True)
class FoundRegion:
    """A region of memory when a run begins.

    Attributes:
        base: its first byte.
        size: its bytes.
        name: what it is to the program.
        scratch: whether its contents meant nothing.
        used: whether sticks that nothing wrote are cleared when they are read.
        states: what was written where; never changed.
    """

    base: int
    size: int
    name: str
    scratch: bool
    used: bool
    states: ShadowMemory

    @staticmethod
    def of(region: MemoryRegion) -> FoundRegion:
        """Note a region; states that it shares are copied by whoever writes to them, so they stay as they are."""
        states = region.states if region.shared else region.states.copy()
        return FoundRegion(region.base, region.size, region.name, region.scratch, region.used, states)

    def is_like(self, region: MemoryRegion) -> bool:
        """Return whether a region at the same place is the same to every check of a state."""
        mine = self.size, self.name, self.scratch, self.used
        return mine == (region.size, region.name, region.scratch, region.used) and self.states.equals(region.states)


@dataclass(frozen=True)
class KnownRun:
    """A run of a bundle function, with the states of memory before and after.

    Attributes:
        step: number of the last launch before it.
        found: the regions that its launches touch, of those that were there.
        steps: allocations and launches.
        left: states of the regions that it writes, by their base.
        cleared: sticks to clear at first, of regions that others used, by their base.
        scratchpads: the sticks of scratchpads that it writes, if it uses any.
    """

    step: int
    found: tuple[FoundRegion, ...]
    steps: tuple[PoolAllocation | KnownLaunch, ...]
    left: dict[int, ShadowMemory]
    cleared: dict[int, Ints]
    scratchpads: Bools | None

    def begins_with(self, memory: Memory) -> bool:
        """Return whether memory has the states that the run began with."""
        there = {region.base: region for region in memory.regions}
        return self.step == memory.step and all(
            found.base in there and found.is_like(there[found.base]) for found in self.found
        )

    def again(self, memory: Memory, allocate: Callable[[PoolAllocation], int]) -> bool:
        """Run it on other numbers; return False, with nothing done, if they decide otherwise what is written.

        Raises:
            MachineFault: the numbers are wrong.
        """
        overflows = dict(memory.log.overflows)
        self._prepare(memory)
        memory.tracked = False
        try:
            with np.errstate(all="ignore"):
                self._launch(memory, allocate)
        except StatesDiffer:
            self._undo(memory)
            memory.log.overflows = overflows
            return False
        except MachineFault as fault:
            memory.log.keep(fault)
        finally:
            memory.tracked, memory.element, memory.log.standing = True, None, None
        for region in memory.regions:
            if (states := self.left.get(region.base)) is not None:
                region.states = states.copy()
        return True

    def _undo(self, memory: Memory) -> None:
        """Empty the regions that the run writes, which were empty before."""
        memory.step = self.step
        for region in memory.regions:
            if region.base in self.left:
                region.cells.fill(0)
                region.states = ShadowMemory(region.size)
        memory.forget_scratchpads()

    def _launch(self, memory: Memory, allocate: Callable[[PoolAllocation], int]) -> None:
        for step in self.steps:
            if isinstance(step, KnownLaunch):
                step.run(memory)
            else:
                allocate(step)  # zeroed as a whole, as nobody keeps what is written where

    def _prepare(self, memory: Memory) -> None:
        """Make the scratchpads, and clear what the run reads without having written it."""
        if self.scratchpads is not None:
            memory.add_scratchpads().touched = self.scratchpads
        for region in memory.regions:
            if (sticks := self.cleared.get(region.base)) is not None:
                region.zero(sticks)


class RunRecorder:
    """Notes what a run finds and leaves.

    Args:
        memory: as the run finds it.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory, self._step, self._faults = memory, memory.step, len(memory.log.faults)
        self._found = [FoundRegion.of(region) for region in memory.regions]

    def known(self, trace: Trace, plans: LaunchPlans, past: History) -> KnownRun | None:
        """Return the run that has just come to its end; None if its states are not known beforehand."""
        memory = self._memory
        launches = self._launches(trace, plans, past)
        if launches is None or len(memory.log.faults) != self._faults:
            return None
        whole = [step.plan.whole for step in launches if isinstance(step, KnownLaunch) and step.plan.whole is not None]
        before = {found.base for found in self._found}
        touched = {memory.locate(a.low, a.high).base for tile in whole for a in tile.accesses}
        written = {memory.locate(t.accesses[-1].low, t.accesses[-1].high).base for t in whole}
        regions = [region for region in memory.regions if region.base in touched]
        if any(region.cleared is None for region in regions):
            return None
        left = {region.base: region.states.copy() for region in regions if region.base in written & before}
        if past.chosen and not all(found.states.empty for found in self._found if found.base in left):
            return None  # it could not begin anew
        pads = next((region for region in regions if region.sparse), None)
        return KnownRun(
            self._step,
            tuple(found for found in self._found if found.base in touched),
            tuple(launches),
            left,
            {region.base: np.unique(np.concatenate(region.cleared)) for region in regions if region.cleared},
            None if pads is None else (pads.states.writer > 0) | (pads.states.known > 0),
        )

    def _launches(
        self, trace: Trace, plans: LaunchPlans, past: History
    ) -> Sequence[PoolAllocation | KnownLaunch] | None:
        """The steps of a trace as launches that need no states; None if one of them does."""
        if not past.repeatable:
            return None
        steps: list[PoolAllocation | KnownLaunch] = []
        number = self._step
        for step in trace:
            if isinstance(step, PoolAllocation):
                steps.append(step)
                continue
            number += 1
            if (plan := plans.known(step.view, self._memory, step.symbols)) is None:
                return None
            steps.append(_known_launch(step, plan, number, past))
        return steps


def _known_launch(bound: BoundLaunch, plan: LaunchPlan, number: int, past: History) -> KnownLaunch:
    return KnownLaunch(plan, bound.standing, number in past.kept, past.kept.get(number), past.chosen.get(number, ()))


__all__ = ["FoundRegion", "KnownRun", "RunRecorder"]
