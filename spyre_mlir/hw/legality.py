"""Legal layouts of an operand; a pass chooses among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, StickLayout


def stick_for(index: IndexMap, lane: str | None, lanes: int) -> int | None:
    """Return the tensor dimension that must be the stick so that loop `lane` steps through the lanes.

    Args:
        index: the operand's map.
        lane: the loop in the lanes of the operation, or None for a sparse operation.
        lanes: elements per stick of the operand.

    Returns:
        A dimension, `UNIT` for a sparse operand (it does not depend on `lane`), or None if no layout
        of this tensor serves.
    """
    if lane is None:
        return UNIT
    found: int | None = None
    for dim, expr in enumerate(index):
        for name, _ in expr.terms:
            if name == lane and dim != found:
                if found is not None:
                    return None
                found = dim
    if found is None:
        return UNIT
    return found if walks_lanes(index[found], lane, lanes) else None


def walks_lanes(expr: LinearExpr, lane: str, lanes: int) -> bool:
    """Return whether `lane` steps one by one from the start of a stick, and every other loop by whole sticks."""
    own = [c for n, c in expr.terms if n == lane]
    others = [c % lanes for n, c in expr.terms if n != lane]
    return own == [1] and expr.const % lanes == 0 and not any(others)


def writes_whole_sticks(expr: LinearExpr, lane: str, extents: Mapping[str, int], extent: int, lanes: int) -> bool:
    """Return whether writing along `lane` leaves no stale elements in any stick.

    The last stick may be partial only where the tensor ends: the lanes behind are padding.
    """
    if extents[lane] % lanes == 0:
        return True
    return len(expr.terms) == 1 and expr.const + extents[lane] == extent


def may_write(index: IndexMap, shape: Sequence[int], lane: str | None, extents: Mapping[str, int], lanes: int) -> bool:
    """Return whether a result may have `lane` in its lanes."""
    dim = stick_for(index, lane, lanes)
    if dim is None or lane is None:
        return dim is not None
    if dim == UNIT:
        return False
    return writes_whole_sticks(index[dim], lane, extents, shape[dim], lanes)


def multiples(index: IndexMap, layout: StickLayout, found: int | None = None) -> dict[int, int]:
    """Return the required multiple of each tensor dimension's reserved extent, so that strides nest.

    The strides of a dimension nest in those of what is walked outside it; where nothing is, any extent will do.

    Args:
        index: the operand's map.
        layout: where the tensor's elements lie.
        found: a dimension that is walked although the map does not say how: the rows of a gather's table.
    """
    exprs = dict(zip((*range(len(layout.extents)), UNIT), index, strict=False))
    walked = [dim == found or (dim in exprs and bool(exprs[dim].terms)) for dim in layout.order]
    demands: dict[int, int] = {}
    for place, dim in enumerate(layout.order):
        most = max((abs(c) for _, c in exprs[dim].terms), default=1) if dim in exprs and dim != UNIT else 1
        if most > 1 and any(walked[:place]):
            demands[dim] = most
    return demands
