"""Lanes of a gather: a loop along the rows walks those of the table and of the result."""

from __future__ import annotations

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.legality import may_write, stick_for
from spyre_mlir.hw.sticks import UNIT


def gather_sticks(op: loop.LoopGatherOp, lane: str, lanes: int) -> tuple[int, int] | None:
    """Return the stick dimensions of table and result, if `lane` can walk the lanes of both.

    Args:
        op: the gather.
        lane: one of its loops.
        lanes: elements that stay together in a stick.
    """
    _, table_map, out_map = (m.data for m in op.maps)
    table, out = stick_for(table_map, lane, lanes), stick_for(out_map, lane, lanes)
    if table is None or table == UNIT or out is None:
        return None
    return (table, out) if may_write(out_map, shape_of(op.result), lane, op.space.extents, lanes) else None


__all__ = ["gather_sticks"]
