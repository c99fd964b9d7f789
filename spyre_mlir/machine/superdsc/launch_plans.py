"""Plans of launches: all that follows from a file and its addresses, and from no element in memory.

A plan is made at the first launch and kept, so that a further launch only reads, computes, rounds and stores. A launch
that met a fault on the way to its plan has none: it meets the fault again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.hw.formats import FP32, INT32
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.faults import FaultKind, Place, fault
from spyre_mlir.machine.hardware_functions import Meaning, Movement, meaning_of
from spyre_mlir.machine.memory.exact import Bools, Ints, Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout, slice_table
from spyre_mlir.machine.memory.shadow import FORMAT_TAGS
from spyre_mlir.machine.superdsc.core_rules.gather import share_table
from spyre_mlir.machine.superdsc.races import require_no_race
from spyre_mlir.machine.superdsc.work import Tile, TileWork
from spyre_mlir.ops.function_facts import LaneOrder

Symbols = Mapping[int, int]

# Launches with addresses of their own that are kept; a loop has new ones in every trip.
_KEPT = 1 << 13


@dataclass(frozen=True)
class LaunchPlan:
    """One launch with its addresses.

    Attributes:
        view: the file, with sizes bound.
        meaning: of its function.
        layouts: one per operand.
        whole: the operands of all cores together, where that is exactly what the cores do one by one.
        by_core: else the operands of each core.
    """

    view: Descriptor
    meaning: Meaning
    layouts: tuple[OperandLayout, ...]
    whole: Tile | None
    by_core: tuple[Tile, ...] = ()

    @cached_property
    def work(self) -> TileWork | None:
        """The function on all cores together, where that is exactly what they do one by one."""
        return None if self.whole is None else TileWork(self.view, self.meaning, self.whole)

    @property
    def name(self) -> str:
        """The operation, as ``2:add``."""
        return self.layouts[-1].name

    @cached_property
    def picks(self) -> bool:
        """Return whether indices select the elements that the file reads."""
        return any(operand.indirect is not None for operand in self.view.operands)

    @cached_property
    def in_scratchpads(self) -> bool:
        """Return whether an operand is in LX."""
        return any(operand.component == keys.LX for operand in self.view.operands)

    @cached_property
    def in_place(self) -> bool:
        """Return whether the file writes exactly where it reads: it modifies existing tensors and makes none."""
        if self.whole is None:
            return False
        *inputs, output = self.whole.accesses
        return any((a.base, a.axes) == (output.base, output.axes) for a in inputs)


_Key = tuple[int, tuple[tuple[int, int], ...], bool]


def _key(view: Descriptor, memory: Memory, symbols: Symbols | None) -> _Key:
    return id(view), tuple((symbols or {}).items()), memory.partial_sums_are_wide


@dataclass
class LaunchPlans:
    """The plans of one program's launches, kept from run to run.

    A file's descriptor stands for the file, so a program that is read again needs plans of its own.
    """

    _plans: dict[_Key, tuple[Descriptor, LaunchPlan]] = field(default_factory=dict[_Key, tuple[Descriptor, LaunchPlan]])

    def known(self, view: Descriptor, memory: Memory, symbols: Symbols | None) -> LaunchPlan | None:
        """Return the plan of an earlier launch, None if there is none."""
        found = self._plans.get(_key(view, memory, symbols))
        return None if found is None else found[1]

    def plan(
        self, view: Descriptor, memory: Memory, symbols: Symbols | None, make: Callable[[], LaunchPlan | None]
    ) -> LaunchPlan | None:
        """Return the plan of a launch, made if there is none; None if `make` gives none.

        Args:
            view: what the file says.
            memory: where the launch runs.
            symbols: byte address per symbol id.
            make: makes the plan.
        """
        plan = self.known(view, memory, symbols)
        if plan is not None:
            if plan.in_scratchpads:
                memory.add_scratchpads()
            return plan
        before = len(memory.log.faults)
        plan = make()
        if plan is not None and len(memory.log.faults) == before:
            if len(self._plans) >= _KEPT:
                self._plans.clear()
            self._plans[_key(view, memory, symbols)] = (
                view,
                plan,
            )  # with the descriptor, as its number must not become another one's
        return plan


def make_plan(view: Descriptor, memory: Memory, symbols: Symbols | None) -> LaunchPlan:
    """Make the plan that a file and its addresses decide, whatever the numbers are.

    Args:
        view: what the file says, with sizes bound.
        memory: gives the scratchpads' place; takes faults.
        symbols: byte address per symbol id.

    Raises:
        MachineFault: addresses or slices are wrong, or two cores race.
        UnsupportedError: the machine has no rule for what the descriptor asks.
    """
    meaning = meaning_of(view.op_func)
    layouts = _layouts(view, memory, symbols)
    if _copies_integers(view, meaning, int(layouts[0].starts[0]), memory):
        view = replace(view, operands=tuple(replace(operand, format=INT32.name) for operand in view.operands))
        layouts = _layouts(view, memory, symbols)
    slices = _schedule(view, memory)
    for layout in layouts:
        share_table(layout, memory.log)
        layout.require_span(memory.log)
    cut_sum = any(dim.split > 1 and dim.label not in view.output.order for dim in view.dims)
    tile = None if cut_sum and not memory.partial_sums_are_wide else _all_cores(view, layouts, slices)
    cores = range(view.cores)
    if tile is None:
        tiles = tuple(_one_core(view, layouts, slices, core) for core in cores)
        return LaunchPlan(view, meaning, layouts, None, tiles)
    require_no_race([tile.accesses], memory.log, lambda: [[x.core(core) for x in layouts] for core in cores])
    return LaunchPlan(view, meaning, layouts, tile)


def _layouts(view: Descriptor, memory: Memory, symbols: Symbols | None) -> tuple[OperandLayout, ...]:
    return tuple(OperandLayout(view, index, memory, symbols) for index in range(len(view.operands)))


def _copies_integers(view: Descriptor, meaning: Meaning, start: int, memory: Memory) -> bool:
    """Return whether a copy labelled FP32 moves the bits of 32-bit integers, as torch-spyre labels copies of those."""
    if not isinstance(meaning, Movement) or meaning.lanes is not LaneOrder.KEPT or not memory.tracked:
        return False
    if {operand.format for operand in view.operands} != {FP32.name}:
        return False
    found = next((region for region in memory.regions if region.base <= start < region.end), None)
    # A start outside of memory is a fault of the access.
    return found is not None and found.states.tags[(start - found.base) // STICK_BYTES] == FORMAT_TAGS[INT32.name]


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
    numbers = slices @ np.cumprod([1, *splits[:-1]])  # different for different slices, if all of these are there
    if not outside.any() and len(set(numbers.tolist())) == len(slices):
        return slices
    for core, row in enumerate(slices):
        other = seen.setdefault(row.tobytes(), core)
        if outside[core] or other != core:
            text = "a slice that is not there" if outside[core] else f"the slices of core {other}"
            message = f"core {core} works on {text}: {dict(view.core_slices[core])}"
            raise fault(FaultKind.BAD_SCHEDULE, message, Place(op=name, core=core))
    return slices


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


__all__ = ["LaunchPlan", "LaunchPlans", "make_plan"]
