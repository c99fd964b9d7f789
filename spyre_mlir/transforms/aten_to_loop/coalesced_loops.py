"""Reduction of loop counts that exceed a file's names: adjacent loops merge, and a shuffle becomes several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod

from xdsl.ir import SSAValue

from spyre_mlir.hw.sticks import IndexMap, LinearExpr
from spyre_mlir.ops.index_views import AxisIndex, IndexView
from spyre_mlir.transforms.aten_to_loop.nests import NestLoops, TensorView, whole

# A file has eight labels (torch-spyre code generation; certain). One may go to the lanes of a sparse operation, and
# one to a gap between rows.
MOST_LOOPS = 6
MOVED_AT_ONCE = 2  # that many axes to the front make five runs of axes at most


def loop_count(loops: NestLoops) -> int:
    """Return the number of loops."""
    return sum(len(names) for names in loops.names)


def merged(loops: NestLoops, out: IndexMap) -> tuple[NestLoops, IndexMap]:
    """Return the same nest with neighbouring loops merged wherever all its maps traverse them as one."""
    names = [n for ns in loops.names for n in ns]
    extents = [e for es in loops.extents for e in es]
    maps = [*loops.maps, out]
    at = 0
    while at + 1 < len(names):
        outer, inner = names[at], names[at + 1]
        if all(_as_one(e, outer, inner, extents[at + 1]) for m in maps for e in m):
            maps = [tuple(_joined(e, outer, inner) for e in m) for m in maps]
            extents[at : at + 2] = [extents[at] * extents[at + 1]]
            del names[at + 1]
        else:
            at += 1
    return NestLoops(tuple((n,) for n in names), tuple((e,) for e in extents), tuple(maps[:-1])), maps[-1]


def _as_one(expr: LinearExpr, outer: str, inner: str, extent: int) -> bool:
    step = dict(expr.terms)
    return step.get(outer, 0) == step.get(inner, 0) * extent


def _joined(expr: LinearExpr, outer: str, inner: str) -> LinearExpr:
    step = dict(expr.terms)
    terms = tuple((n, step.get(inner, 0) if n == outer else c) for n, c in expr.terms if n != inner)
    return LinearExpr(expr.const, terms)


def stored_order(view: IndexView) -> list[AxisIndex] | None:
    """Return the axes of a view in storage order of its base; None unless it is all of the base, once."""
    order: list[AxisIndex] = []
    for extent, offset, terms in zip(view.base, view.offsets, view.terms, strict=True):
        inner = extent
        for axis, step in sorted(terms, key=lambda term: -term[1]):
            inner, rest = divmod(inner, view.extents[axis])
            if rest or step != inner:
                return None
            order.append(axis)
        if offset or inner != 1:
            return None
    wanted = sorted(a for axes in view.dims for a in axes)
    return order if sorted(order) == wanted and len(set(order)) == len(order) else None


def _runs(order: Sequence[AxisIndex], stored: Sequence[AxisIndex]) -> list[list[AxisIndex]]:
    """An order cut wherever neighbours are none in what is stored."""
    place = {a: n for n, a in enumerate(stored)}
    runs = [[order[0]]]
    for before, axis in pairwise(order):
        if place[axis] == place[before] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


def staged(copy: Callable[[TensorView, tuple[int, ...]], TensorView], reading: TensorView) -> TensorView | None:
    """Return the view of an intermediate tensor closer to its order: some axes at a time were moved to the front.

    Args:
        copy: makes a fresh tensor with the elements of a reading, under another shape of the same order.
        reading: what is read.

    Returns:
        None if the reading is no mere change of order, or of a tensor of too many dimensions.
    """
    view = reading.view
    stored, wanted = stored_order(view), [a for axes in view.dims for a in axes]
    if stored is None or len(view.base) > MOST_LOOPS:
        return None
    # In one dimension, neighbouring axes are one loop whatever dimensions they had.
    total = (prod(view.base),)
    base = copy(whole(reading.base), total).base
    # The last axes to be moved end up in front.
    at = len(wanted)
    while len(_runs(wanted, stored)) > MOST_LOOPS and at > 0:
        moved = wanted[max(0, at - MOVED_AT_ONCE) : at]
        at -= len(moved)
        order = [*moved, *(a for a in stored if a not in moved)]
        base = copy(_reordered(base, view, stored, order), total).base
        stored = order
    return TensorView(base, _reordered(base, view, stored, wanted).view.reshape(view.shape))


def _shape(runs: Sequence[Sequence[AxisIndex]], extent: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(extent[a] for a in run) for run in runs)


def _reordered(base: SSAValue, view: IndexView, stored: Sequence[AxisIndex], order: Sequence[AxisIndex]) -> TensorView:
    """All of a tensor that stores some axes, run by run in another order."""
    runs = _runs(order, stored)
    place = {a: n for n, a in enumerate(stored)}
    by_place = sorted(range(len(runs)), key=lambda r: place[runs[r][0]])
    plain = whole(base)
    cut = plain.view.reshape(_shape([runs[r] for r in by_place], view.extents))
    return TensorView(plain.base, cut.permute(tuple(by_place.index(r) for r in range(len(runs)))))
