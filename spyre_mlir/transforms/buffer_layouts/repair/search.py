"""The search for better layouts around changes of layout, within a budget of work."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.modules import copy_of, take_apart
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice
from spyre_mlir.errors import SpyreError
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import PlannedLayouts, Spot
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPricing
from spyre_mlir.transforms.buffer_layouts.repair.regions import LayoutRegion, region_around
from spyre_mlir.transforms.buffer_layouts.repair.sparse_chains import sparse_chains
from spyre_mlir.transforms.buffer_layouts.repair.trials import NOTHING, Found, RegionTrials
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass

LEAST_STICKS, LEAST_PART = 512, 0.01  # of a spot that is worth a trial: so many, or that part of a small function's
MOST_IN_VAIN = 4  # regions in a row that gain nothing, after which no other is tried
WORK_AT_LEAST, WORK_PER_US = 300, 16.0  # of the trials of a module: so much, and more for what its spots take
MOST_WORK = 1600  # after which no other region is begun
TRIALS, PLANS = 5, 2  # of a region that is begun, and of the whole module
PLANNED_AND_PRICED = 2  # what a kernel counts
CLEAR_PART = 0.005  # of the time of a module, that regions have to gain
CLEAR_LOSS = 0.01  # of the time of a function, that equal regions lose by layouts if they are worth a trial

Choices = Mapping[Operation, LayoutChoice]


@dataclass
class LayoutSearch:
    """The search in a module; equal regions are tried once.

    Attributes:
        module: at the loop level; its layouts are planned, and it is as before.
        convert: the conversion to kernels, with its options.
        pricing: gives prices.
    """

    module: ModuleOp
    convert: ConvertSpyreLoopToSpyreKernelPass
    pricing: LayoutPricing
    _known: dict[Hashable, Found] = field(default_factory=dict[Hashable, Found])
    _times: dict[Hashable, list[float] | None] = field(default_factory=dict[Hashable, "list[float] | None"])
    _most: float = 0.0

    def chains(self, functions: Sequence[PlannedLayouts]) -> Choices:
        """Return layouts of steps on numbers of rows, one element per stick, if all functions together gain by them."""
        found = {op: choice for planned in functions for op, choice in sparse_chains(planned).items()}
        if not found:
            return found
        quicker = all(self._is_less({}, found, loops=loops) for loops in (False, True))
        return found if quicker else {}

    def better(self, functions: Sequence[PlannedLayouts]) -> Choices:
        """Return layouts of ops that are predicted to be quicker than those that the functions have."""
        present = {op: choice for planned in functions for op, choice in planned.choices.items()}
        kernels = sum(len(planned.kernels) for planned in functions)
        worth = self._worth(spot for planned in functions for spot in planned.spots)
        self._most = min(worth - PLANS * PLANNED_AND_PRICED * kernels, MOST_WORK)
        regions = [one for planned in functions for one in self._regions(planned)]
        taken = {op: choice for region, found in regions if region.whole for op, choice in _said(region, found)}
        others = [(dict(_said(region, found)), found.gain_us) for region, found in regions if not region.whole]
        before = {**present, **taken}
        if not others or (us := self._us(before, loops=False)) is None:
            return taken
        # What stays in scratchpads across the edge of a region is seen in the whole program alone.
        together = {op: choice for one, _ in others for op, choice in one.items()}
        every = together, sum(gain_us for _, gain_us in others)
        for more, gain_us in (every, *([max(others, key=lambda one: one[1])] if len(others) > 1 else [])):
            if gain_us < CLEAR_PART * sum(us):
                break
            if all(self._is_less(before, {**before, **more}, loops=loops) for loops in (False, True)):
                return {**taken, **more}
        return taken

    def _worth(self, spots: Iterable[Spot]) -> float:
        """The work that is worth while for what spots take."""
        us = self.pricing.parameters.memory_us(sum(spot.sticks for spot in spots) * STICK_BYTES)
        return WORK_AT_LEAST + WORK_PER_US * us

    def _is_paid(self, region: LayoutRegion, planned: PlannedLayouts) -> bool:
        """Whether some trials of a region are worth while for its own spots, and the budget has room for them."""
        own = (spot for spot in planned.spots if not set(region.ops).isdisjoint(spot.ops))
        return TRIALS * PLANNED_AND_PRICED * planned.kernels_of(region.ops) <= min(
            self._most - self.pricing.work, self._worth(own)
        )

    def _regions(self, planned: PlannedLayouts) -> Iterator[tuple[LayoutRegion, Found]]:
        """Regions of a function that have better layouts, and these; none shares an op with another."""
        done, changed, in_vain = set[Operation](), set[Operation](), 0
        little = min(LEAST_STICKS, LEAST_PART * planned.sticks)
        for spot in planned.spots:
            if spot.sticks < little or in_vain >= MOST_IN_VAIN or self.pricing.work >= self._most:
                return
            if done.issuperset(spot.ops):
                continue
            region = region_around(spot.ops, planned)
            done.update(spot.ops)
            if region is None or not changed.isdisjoint(region.ops):
                continue
            done.update(region.ops)
            key = region.key
            if key in self._known:
                found = self._known[key]
            elif self._is_paid(region, planned):
                found = self._known[key] = self._best(region, planned, spot, little)
                in_vain = 0 if found.layouts else in_vain + 1
            else:
                found = NOTHING
            if found.layouts:
                changed.update(region.ops)
                yield region, found

    def _best(self, region: LayoutRegion, planned: PlannedLayouts, spot: Spot, little: float) -> Found:
        """The best layouts of a region, unless it loses little of the time of all, or as little as few sticks take."""
        alike = [other for other in planned.spots if other.sticks == spot.sticks]
        inside = [other for other in alike if not set(region.ops).isdisjoint(other.ops)]
        worth_us = CLEAR_LOSS * planned.least_us(self.pricing.parameters) * len(inside) / len(alike)
        little_us = self.pricing.parameters.memory_us(little * STICK_BYTES)
        return RegionTrials(region, self.convert, self.pricing, little_us).best(worth_us)

    def _is_less(self, before: Choices, after: Choices, *, loops: bool) -> bool:
        """Whether no function takes longer with other layouts, and one takes less."""
        before_us, after_us = self._us(before, loops=loops), self._us(after, loops=loops)
        if before_us is None or after_us is None:
            return False
        pairs = list(zip(before_us, after_us, strict=True))
        return all(now <= was for was, now in pairs) and any(now < was for was, now in pairs)

    def _us(self, choices: Choices, *, loops: bool) -> list[float] | None:
        """Predicted times of the functions of the module with layouts; None if they cannot be planned."""
        key = frozenset(choices.items()), loops
        if key not in self._times:
            self._times[key] = self._planned_us(choices, loops=loops)
        return self._times[key]

    def _planned_us(self, choices: Choices, *, loops: bool) -> list[float] | None:
        module = copy_of(self.module)
        for old, new in zip(self.module.walk(), module.walk(), strict=True):
            if old in choices:
                new.attributes[LAYOUT] = LayoutAttr(choices[old])
        try:
            functions = self.convert.planned(self.pricing.context, module, checked=False)
            return (self.pricing.full if loops else self.pricing.without_loops)(module, functions)
        except SpyreError:
            return None
        finally:
            take_apart(module)


def _said(region: LayoutRegion, found: Found) -> Iterator[tuple[Operation, LayoutChoice]]:
    """All layouts of a region that has better ones: those that stay too, as others are chosen around them."""
    return ((region.ops[number], choice) for number, choice in found.layouts.items())


__all__ = ["LayoutSearch"]
