"""Extents of restickifies once all padding is known: equal in their loops and both buffers, and shared well by cores.

A file says of a restickify's buffer only how far it differs from the loops, not in which direction. Cores take equal
slices of whole sticks of both lanes: one core takes 47 sticks, 24 cores share 48. So buffers reserve a few sticks more
where their number has no divisors.

Decision: docs/decisions/0163-sticks-that-cores-share.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import lcm, prod

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import UNIT, LinearExpr
from spyre_mlir.transforms.loop_to_kernel.buffers import Item, PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RESTICKIFY_STEP, LayoutPlanner

# One stick may be added to so many, and at most this part of what the busiest core moved has to be left.
_STICKS_PER_ADDED, _WORTH = 8, 0.75


def settle(p: LayoutPlanner) -> None:
    """Make every restickify cover whole buffers. Padding grows only, and a buffer is copied once, so this ends."""
    settled = False
    while not settled:
        settled = True
        for at, item in reversed(list(enumerate(p.items))):
            if isinstance(item, PlannedKernel) and item.function == RESTICKIFY_STEP and not _runs_over_all(item):
                p.items[at : at + 1] = _over_all(p, item)
                settled = False


def _runs_over_all(step: PlannedKernel) -> bool:
    """Return whether a restickify has loops as long as both its buffers are along every dimension."""
    extents = {d.name: d.extent for d in step.space}
    buffers = (step.inputs[0][0], step.output[0])
    return all(extents.get(f"d{d}", 1) == b.layout.extents[d] for b in buffers for d in range(len(b.shape)))


def _over_all(p: LayoutPlanner, step: PlannedKernel) -> list[Item]:
    """The restickify with equal extents; of a copy where its buffers have no such extents of a sane size."""
    source, made = step.inputs[0][0], step.output[0]
    before: list[Item] = []
    if not _have_room(source, made):
        source, before = _copied(p, source, step)
    for dim, (unit, least) in enumerate(_demands(source, made)):
        source.pad(dim, unit, least)
        made.pad(dim, unit, least)
    dims = [IterDim(f"d{d}", e) for d, e in enumerate(made.layout.extents)]
    dims += [d for d in step.space if not d.name.startswith("d")]
    index = tuple(LinearExpr.of(d.name) if d.extent > 1 else LinearExpr() for d in dims)
    space = tuple(d for d in dims if d.extent > 1)
    return [*before, replace(step, space=space, inputs=[(source, index)], output=(made, index))]


def _demands(source: PlannedBuffer, made: PlannedBuffer) -> list[tuple[int, int]]:
    """Per dimension what both buffers reserve whole multiples of, and the least that holds both."""
    rank = range(len(made.shape))
    return [(lcm(source.unit(d), made.unit(d)), max(b.layout.extents[d] for b in (source, made))) for d in rank]


def _have_room(source: PlannedBuffer, made: PlannedBuffer) -> bool:
    demands = enumerate(_demands(source, made))
    return all(b.has_room(dim, unit, least) for dim, (unit, least) in demands for b in (source, made))


def _copied(p: LayoutPlanner, source: PlannedBuffer, step: PlannedKernel) -> tuple[PlannedBuffer, list[Item]]:
    """A copy of the source without padding, and what makes it."""
    count, p.origin = len(p.items), step.origin
    copy = p.copy(source)
    if UNIT in source.layout.order and source.layout.stick != UNIT:
        copy.reserve_units(source.layout.unit_extent)
    made = p.items[count:]
    del p.items[count:]
    return copy, made


def lengthen(p: LayoutPlanner, spec: SpyreSpec) -> bool:
    """Reserve more sticks for restickifies of a settled plan; return whether any buffer has changed."""
    changed = False
    for item in p.items:
        if isinstance(item, PlannedKernel) and item.function == RESTICKIFY_STEP:
            changed |= _lengthened(item.inputs[0][0], item.output[0], spec)
    return changed


def _lengthened(source: PlannedBuffer, made: PlannedBuffer, spec: SpyreSpec) -> bool:
    """Reserve more along the lanes of both buffers, if that leaves each core much less to move."""
    lanes = [b.layout.stick for b in (source, made)]
    if UNIT in lanes:
        return False
    extents = made.layout.extents
    per_stick = [source.lanes if d in lanes else 1 for d in range(len(extents))]
    units = [e // n for e, n in zip(extents, per_stick, strict=True)]
    choices = [_longer(n) if d in lanes else [n] for d, n in enumerate(units)]
    best = min(product(*choices), key=lambda chosen: (_share(chosen, spec), prod(chosen)))
    if _share(best, spec) > _WORTH * _share(units, spec):
        return False
    wanted = [(d, n * per_stick[d]) for d, n in enumerate(best) if n != units[d]]
    if not all(b.has_room(d, 1, extent) for d, extent in wanted for b in (source, made)):
        return False
    for dim, extent in wanted:
        source.pad(dim, 1, extent)
        made.pad(dim, 1, extent)
    return True


def _longer(sticks: int) -> list[int]:
    return list(range(sticks, sticks + sticks // _STICKS_PER_ADDED + 1))


def _share(units: Sequence[int], spec: SpyreSpec) -> float:
    """The most that one of the cores moves."""
    cores = 1
    for n in sorted(units, reverse=True):
        cores *= max(divisors(n, spec.cores_per_card // cores))
    return prod(units) / cores


__all__ = ["lengthen", "settle"]
