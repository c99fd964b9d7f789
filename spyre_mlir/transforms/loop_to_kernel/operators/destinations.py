"""Tensors that several nests fill, and constant numbers: their layouts."""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16, FP32
from spyre_mlir.hw.legality import may_write
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.loop_to_kernel.choose_lane import (
    lane_of_result,
    read_cost,
    with_later,
    write_cost,
)
from spyre_mlir.transforms.loop_to_kernel.data_formats import (
    keeps_float32,
)
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, block_of
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import (
    allowed_sticks,
    put_in_order,
)
from spyre_mlir.transforms.loop_to_kernel.moved_weights import fillers
from spyre_mlir.transforms.loop_to_kernel.operators.reductions import (
    column_of,
    is_product,
)
from spyre_mlir.transforms.utils.numerics.integer_ranges import (
    NARROW,
    inside,
    is_integer,
)


def lower_empty(p: LayoutPlanner, op: loop.EmptyOp) -> None:
    """Lower a destination: its layout must let every nest that fills it write whole sticks."""
    chain = list(fillers(op.result))
    if is_integer(element_of(op.result)):
        p.of(op.result).format = (DL16 if inside(p.ranges.of(op.result), NARROW) else FP32).name
    if keeps_float32(p, op, element_of(op.result)):
        p.of(op.result).format = FP32.name
    shape, form = shape_of(op.result), p.of(op.result).format
    sticks = allowed_sticks(op, fillable_sticks(op, form))
    now = {s: _fill_cost(p, chain, s, shape, form) for s in sticks}
    best = min(now, key=lambda s: now[s])
    if form == DL16.name:
        best = with_later(op.result, best, now, p.later)
    p.chosen.made[op] = put_in_order(op, p.fresh(shape, form, best))
    p.of(op.result).buffers.append(p.chosen.made[op])


def fillable_sticks(op: loop.EmptyOp, form: str) -> list[int]:
    """Return the stick dimensions with which all nests that fill a destination can write it."""
    chain, dims = list(fillers(op.result)), (*reversed(range(len(shape_of(op.result)))), UNIT)
    others = [n for n in chain if not is_product(n)]  # a product that cannot write there writes a tensor of its own
    possible = ([s for s in dims if all(_can_fill(n, s, block_of(form)) for n in c)] for c in (chain, others))
    return next(found for found in possible if found)


def _can_fill(op: loop.NestOp, stick: int, lanes: int) -> bool:
    lane = lane_of_result(op, stick, lanes)
    if (stick != UNIT and lane is None) or (is_product(op) and lane != column_of(op)):
        return False
    return may_write(op.output_map.data, shape_of(op.result), lane, op.space.extents, lanes)


def _fill_cost(p: LayoutPlanner, chain: Sequence[loop.NestOp], stick: int, shape: tuple[int, ...], form: str) -> float:
    reads = 0.0
    for op in chain:
        lane = lane_of_result(op, stick, block_of(form))
        for value, index in zip(op.inputs, op.input_maps, strict=True):
            known = value in p.versions
            reads += (
                read_cost(p.form(value, form), index.data, lane, op.space.extents, relaid=p.relaid)
                if known
                else write_cost(shape_of(value), UNIT, form)
            )
    return reads + write_cost(shape, stick, form)


def lower_constant(p: LayoutPlanner, op: loop.LoopConstantOp) -> None:
    """Lower constant numbers, which the host provides in any requested layout."""
    versions = p.of(op.result)
    versions.constant = op.value
    if is_integer(element_of(op.result)):
        versions.format = (DL16 if inside(p.ranges.of(op.result), NARROW) else FP32).name


__all__ = ["fillable_sticks", "lower_constant", "lower_empty"]
