"""Trials of layouts in a region: each is priced, and around the best the next are looked for."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.modules import copy_of, take_apart
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice
from spyre_mlir.errors import SpyreError
from spyre_mlir.transforms.buffer_layouts.repair.followers import Followers
from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import PlannedLayouts, is_slow
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPricing, edge_us
from spyre_mlir.transforms.buffer_layouts.repair.regions import LayoutRegion
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass
from spyre_mlir.transforms.loop_to_kernel.conversion import FunctionPlan
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RELAID

WEIGHTS = (1.0, 2.5, 12.0, 40.0)  # of a change of layout, in place of the usual one
WORK_AT_LEAST, WORK_PER_US = 120, 4.0  # of the trials of a region: so much, and more for what it may gain
FEW_FOLLOWERS = 8  # of which the nearest may follow an op alone
CLEAR_GAIN = 0.01  # a part of the time of a region

Layouts = dict[int, LayoutChoice]  # of open ops of a region, by number


@dataclass(frozen=True)
class Found:
    """Layouts of a region that are quicker than those it has.

    Attributes:
        layouts: of its open ops; none if there are no quicker ones.
        gain_us: by which they are.
    """

    layouts: Layouts
    gain_us: float


NOTHING = Found({}, 0.0)


@dataclass(frozen=True)
class RegionTrial:
    """A region with layouts.

    Attributes:
        layouts: of its open ops.
        us: predicted time, with what changes of layout take from the ops beyond the edge of the region.
        lost_us: the part of it that layouts may have to do with.
        near: open ops beside changes of layout, or slow nests; the largest first.
    """

    layouts: Layouts
    us: float
    lost_us: float
    near: tuple[int, ...]


@dataclass
class RegionTrials:
    """Trials of layouts in a region.

    Attributes:
        region: the region.
        convert: the conversion to kernels, with its options.
        pricing: gives prices.
        little_us: time that is not worth a change.
    """

    region: LayoutRegion
    convert: ConvertSpyreLoopToSpyreKernelPass
    pricing: LayoutPricing
    little_us: float = 0.0
    _asked: set[Hashable] = field(default_factory=set[Hashable])
    _known: set[tuple[LayoutChoice, ...]] = field(default_factory=set["tuple[LayoutChoice, ...]"])

    def best(self, worth_us: float = 0.0) -> Found:
        """Return the quickest layouts that are found; none if they gain little, or nothing.

        Args:
            worth_us: nothing is tried if layouts may have to do with less time than that.
        """
        first = self.tried(self.region.present)
        if first is None or first.lost_us < worth_us:
            return NOTHING
        if not is_clear_gain(first.us, first.us - first.lost_us, self.little_us):
            return NOTHING
        best = self._quickest(first)
        if best is first:
            return NOTHING
        before, after = first.us, best.us
        if self.region.whole:  # the whole program judges a part of it, with loops too
            before, after = self._us(first.layouts), self._us(best.layouts)
        if before is None or after is None or not is_clear_gain(before, after, self.little_us):
            return NOTHING
        return Found(best.layouts, before - after)

    def _quickest(self, first: RegionTrial) -> RegionTrial:
        """The quickest layouts that the work finds that is worth while for what the first ones lose."""
        best, current = first, None
        most = self.pricing.work + WORK_AT_LEAST + WORK_PER_US * first.lost_us
        for relaid in WEIGHTS:
            if self.pricing.work >= most:
                break
            best = self.tried({}, relaid, best.us) or best
        while current is not best:
            current = best
            for said in self._beside(current):
                if self.pricing.work >= most:
                    break
                best = self.tried(said, most_us=best.us) or best
        return best

    def tried(
        self, said: Mapping[int, LayoutChoice], relaid: float = RELAID, most_us: float = inf
    ) -> RegionTrial | None:
        """Return the region with these layouts; None if that is no quicker than `most_us`, known, or not possible.

        Args:
            said: layouts of open ops; those of the others are chosen.
            relaid: how much a change of layout counts for these.
            most_us: predicted time that is to be beaten.
        """
        if (asked := (relaid, frozenset(said.items()))) in self._asked:
            return None
        self._asked.add(asked)
        module = self._module(said)
        try:
            (function,) = self._planned(module, relaid)
            ops, planned = self._ops(module), PlannedLayouts.of(function)
            self.pricing.work += len(planned.kernels)
            layouts = {n: planned.choices[ops[n]] for n in self.region.open if ops[n] in planned.choices}
            key = tuple(layouts.values())
            if key in self._known:
                return None
            self._known.add(key)
            near = self._near(ops, planned, layouts)
            edges_us = edge_us(function, self.pricing.parameters)
            price = self.pricing.quick(module, function, most_us - edges_us)
        except SpyreError:
            return None
        finally:
            take_apart(module)
        if price is None or price.us + edges_us >= most_us:
            return None
        return RegionTrial(layouts, price.us + edges_us, price.lost_us + edges_us, near)

    def _us(self, layouts: Layouts) -> float | None:
        """Predicted time with loops."""
        module = self._module(layouts)
        try:
            functions = self._planned(module, RELAID)
            edges_us = sum(edge_us(function, self.pricing.parameters) for function in functions)
            times = self.pricing.full(module, functions)
        except SpyreError:
            return None
        finally:
            take_apart(module)
        return None if times is None else sum(times) + edges_us

    def _module(self, said: Mapping[int, LayoutChoice]) -> ModuleOp:
        module = copy_of(self.region.module)
        ops = self._ops(module)
        for number, choice in said.items():
            ops[number].attributes[LAYOUT] = LayoutAttr(choice)
        return module

    def _planned(self, module: ModuleOp, relaid: float) -> list[FunctionPlan]:
        return replace(self.convert, relaid=relaid).planned(self.pricing.context, module, checked=False)

    def _ops(self, module: ModuleOp) -> list[Operation]:
        """The ops of a copy of the region: those before the last one, which returns."""
        body = [op for op in module.walk() if op.parent_op() is module.body.block.first_op]
        return body[-1 - len(self.region.ops) : -1]

    def _near(self, ops: list[Operation], planned: PlannedLayouts, layouts: Layouts) -> tuple[int, ...]:
        numbers = {op: number for number, op in enumerate(ops)}
        beside = [numbers[op] for spot in planned.spots for op in spot.ops if op in numbers]
        slow = [n for n, choice in layouts.items() if is_slow(ops[n], choice, self.region.open[n])]
        return tuple(n for n in dict.fromkeys([*beside, *slow]) if n in layouts)

    def _beside(self, best: RegionTrial) -> Iterator[Layouts]:
        """Layouts beside the best: an op near a spot has another, and the others follow, are chosen, or keep theirs.

        Of few that could follow, the nearest ones alone may.
        """
        now, followers = best.layouts, Followers(self.region.ops, self.region.open)
        moves = [(n, c) for n in best.near for c in self.region.open[n] if not _is_part(c, now[n])]
        for number, choice in moves:
            followed = followers.of(number, choice)
            yield followed
            yield {**now, **followed}
        yield from ({number: choice} for number, choice in moves)
        yield from ({**now, number: choice} for number, choice in moves)
        for number, choice in moves:
            followed = list(followers.of(number, choice).items())
            most = len(followed) if len(followed) <= FEW_FOLLOWERS else 0
            yield from ({**now, **dict(followed[:count])} for count in range(2, most))


def is_clear_gain(before_us: float, after_us: float, little_us: float) -> bool:
    """Return whether a predicted time is clearly shorter: by a part of it, and by more than a little."""
    return before_us - after_us >= max(little_us, CLEAR_GAIN * before_us)


def _is_part(choice: LayoutChoice, now: LayoutChoice) -> bool:
    return choice.lanes in ("", now.lanes) and choice.stick == now.stick


__all__ = ["NOTHING", "Found", "Layouts", "RegionTrials", "is_clear_gain"]
