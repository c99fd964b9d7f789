"""Layouts of a gather: a loop along the rows walks the lanes of table and result, and heads of pages lie outside.

Decision: docs/decisions/0240-pages-stay-in-the-scratchpads.md
Decision: docs/decisions/0246-caches-beyond-reach-are-read-head-by-head.md
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop_blocks import PutOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.legality import may_write, stick_for
from spyre_mlir.hw.sticks import UNIT, StickLayout


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


def joined_loops(op: loop.LoopGatherOp) -> set[str]:
    """Return loops that the result walks with those of the indices, as places of pages that lie behind each other."""
    named = op.maps.data[0].names
    return {n for e in op.maps.data[2].data if len(e.terms) > 1 for n, _ in e.terms if n not in named}


def table_layout(op: loop.LoopGatherOp, layout: StickLayout) -> StickLayout:
    """Return the layout of a table, from one with its rows outermost, as a gather wants it.

    Dimensions whose rows the result joins are inside of the others: readers divide heads among the cores, and multiply
    with the places of all pages. A dimension of which the gather reads one entry is outside of the rows, so that a core
    has to reach the rows of this entry alone.
    """
    read, joined = op.maps.data[1].data, joined_loops(op)
    inside = [d for d in layout.order if d not in (UNIT, layout.stick) and joined & {n for n, _ in read[d].terms}]
    outside = entry_dims(op, layout)
    if inside:
        *outer, last = (d for d in layout.order if d not in inside)
        layout = replace(layout, order=(*outer, *inside, last))
    return replace(layout, order=(*outside, *(d for d in layout.order if d not in outside)))


def entry_dims(op: loop.LoopGatherOp, layout: StickLayout) -> list[int]:
    """Return the dimensions, but for rows and lanes of a table, of which a gather reads one of several entries."""
    read, axis = op.maps.data[1].data, op.axis.value.data
    dims = (d for d in layout.order if d not in (UNIT, layout.stick, axis))
    return [d for d in dims if not read[d].terms and layout.extents[d] > 1]


def gather_of(value: SSAValue) -> loop.LoopGatherOp | None:
    """Return a gather that reads a tensor as its table, as it is or after more entries of it were stored."""
    while True:
        users = [use.operation for use in value.uses]
        for user in users:
            if isinstance(user, loop.LoopGatherOp) and user.table is value:
                return user
        put = next((user for user in users if isinstance(user, PutOp) and user.dest is value), None)
        if put is None:
            return None
        value = put.result


__all__ = ["entry_dims", "gather_of", "gather_sticks", "joined_loops", "table_layout"]
