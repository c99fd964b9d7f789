"""Restickifies over whole buffers: equal extents of their loops and of both buffers, once all padding is known.

A file says of a restickify's buffer only how far it differs from the loops, not in which direction.
"""

from __future__ import annotations

from dataclasses import replace
from math import lcm

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.hw.sticks import UNIT, LinearExpr
from spyre_mlir.transforms.loop_to_kernel.buffers import Item, PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RESTICKIFY_STEP, LayoutPlanner


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


__all__ = ["settle"]
