"""Restickifies over more cores: buffers reserve a few sticks more where their number has no divisors.

Cores take equal slices, and a restickify moves whole sticks of both its lanes: one core takes 47 sticks, 24 cores share
48. The loops of a restickify cover whole buffers, so the sticks that are added are copied too.

Decision: docs/decisions/0163-sticks-that-cores-share.md
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RESTICKIFY_STEP, LayoutPlanner

# Sticks that may be added to eight, and what a core has to gain for them.
_OF, _WORTH = 8, 0.75


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
    extents = list(made.layout.extents)
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
    return list(range(sticks, sticks + sticks // _OF + 1))


def _share(units: Sequence[int], spec: SpyreSpec) -> float:
    """The most that one of the cores moves."""
    cores = 1
    for n in sorted(units, reverse=True):
        cores *= max(divisors(n, spec.cores_per_card // cores))
    return prod(units) / cores


__all__ = ["lengthen"]
