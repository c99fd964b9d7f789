"""Lowering of each op of the loop level to planned kernels on buffers with layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import body_function, combiner
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.hw.formats import DL16, FP32
from spyre_mlir.hw.legality import may_write, stick_for
from spyre_mlir.hw.moves import Move, RowParts
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, StickError, StickLayout, access
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.ops.native import contractions, floor_division, pointwise, reductions
from spyre_mlir.planning.row_parts import parts_of_rows
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel, Use
from spyre_mlir.transforms.loop_to_kernel.choose_lane import (
    candidates,
    lane_for,
    lane_of_result,
    read_cost,
    with_later,
    write_cost,
)
from spyre_mlir.transforms.loop_to_kernel.data_formats import (
    cast,
    eager_element,
    forms_of,
    is_watched,
    keeps_float32,
    wrapped,
)
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.kernel_ops import GATHER_STEP
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, block_of, lanes_of
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import (
    allowed_lanes,
    allowed_sticks,
    check_said,
    put_in_order,
)
from spyre_mlir.transforms.loop_to_kernel.moved_weights import fillers
from spyre_mlir.transforms.loop_to_kernel.reductions import (
    can_write,
    column_of,
    is_product,
    lower_quotient,
    lower_reduction,
    names_in,
    output_of,
    split_write,
)
from spyre_mlir.transforms.loop_to_kernel.settling.reachable_layouts import table_beyond_reach
from spyre_mlir.transforms.loop_to_kernel.unpacking import packed_digit
from spyre_mlir.transforms.utils.function_constants import function_constants
from spyre_mlir.transforms.utils.numerics.integer_ranges import (
    NARROW,
    converts_to_integers,
    holds,
    inside,
    is_integer,
    wraps,
)

COLUMNS = "a product has its columns in the lanes"
_PART = "part"  # the loop over parts of the rows of a table


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


def lower_nest(p: LayoutPlanner, op: loop.NestOp) -> None:
    """Lower a nest: a contraction, a reduction, or an elementwise op."""
    if op.dest is not None and not can_write(op, p.of(op.dest).buffers[0]):
        made, copy = split_write(op)
        p.chosen.split |= {made: op, copy: op}
        p.chosen.lanes[op] = None
        lower_nest(p, made)
        lower_nest(p, copy)
        p.versions[op.result] = p.of(copy.result)
        return
    if packed_digit(p, op):
        return
    entry = body_function(op.body.block)
    if op.combine is None:
        if entry is floor_division.floor_divide_integers:
            lower_quotient(p, op)
        elif entry is not None or not cast(p, op):
            _lower_pointwise(p, op, COPY if entry is None else str(entry.opfunc))
    elif entry is pointwise.mul and combiner(op.combine.data) is reductions.sum and len(op.reduced) == 1:
        _lower_product(p, op)
    elif entry is None and len(op.reduced) == 1:
        lower_reduction(p, op, str(combiner(op.combine.data).opfunc))
    else:
        raise UnsupportedError(
            f"a nest that combines {', '.join(op.reduced)} of a computed body",
            hint="reduce one loop at a time, of a copied element",
        )


def _lower_pointwise(p: LayoutPlanner, op: loop.NestOp, function: str) -> None:
    forms, element = forms_of(p, op, function), element_of(op.result)
    p.of(op.result).format = forms.format
    lane = lane_for(p, op, forms)
    inputs = [p.operand(v, m.data, lane, op.space.data) for v, m in zip(forms.operands, op.input_maps, strict=True)]
    watched = is_watched(p, op, function, forms.format)
    constants = function_constants(op.body.block, function, forms.format)
    output, kept = output_of(p, op, lane), eager_element(op, forms.format)
    p.step(function, op.space.data, inputs, output, integers=watched, constants=constants, element=kept)
    if wraps(element) and not inside(p.ranges.unwrapped(op), holds(element)):
        # A float may have any size, and its low bits are none of DL16's.
        whole = p.form(op.result, FP32.name) if converts_to_integers(op) else p.of(op.result)
        p.versions[op.result] = wrapped(p, whole, element)


def _lower_product(p: LayoutPlanner, op: loop.NestOp) -> None:
    """A product: the summed loop in the lanes of the first operand, the column loop in the others'."""
    (summed,) = op.reduced
    if op.dest is None:
        p.of(op.result).format = DL16.name  # the matrix unit knows no other
    first, second = 0, 1
    columns = [n for n in names_in(op, 1) if n not in names_in(op, 0)]
    if len(columns) > 1:
        first, second = 1, 0
        columns = [n for n in names_in(op, 0) if n not in names_in(op, 1)]
    if len(columns) > 1:
        raise LoweringError(
            f"a product with column loops {', '.join(columns)}; the hardware has one",
            hint="copy the second operand so that its columns are one loop",
        )
    column = columns[0] if columns else None
    extents = op.space.extents
    left = _whole_along(p, op, first, summed, lane=summed)
    right = _whole_along(p, op, second, summed, lane=column)
    stick = next(d for d, e in enumerate(left[1]) if any(n == summed for n, _ in e.terms))
    rows = next(d for d, e in enumerate(right[1]) if any(n == summed for n, _ in e.terms))
    left = p.filled_tail(left, stick, extents[summed], 0.0)
    right = p.cleared_rows(right, rows, extents[summed])
    if not may_write(op.output_map.data, shape_of(op.result), column, extents, lanes_of(p.of(op.result).format)):
        raise LoweringError(
            f"the result of a product cannot have {column} in its lanes",
            hint="write it to a tensor of its own and copy",
        )
    output = output_of(p, op, column)
    p.chosen.lanes[op] = column
    check_said(op, (column, output[0].layout.stick), output[0].layout.order, COLUMNS)
    p.step(str(contractions.matmul.opfunc), op.space.data, [left, right], output, element=eager_element(op, DL16.name))


def _whole_along(p: LayoutPlanner, op: loop.NestOp, operand: int, summed: str, lane: str | None) -> Use:
    """The operand, copied first if the summed loop covers only part of a dimension and needs padding."""
    versions, index = p.form(op.inputs[operand], DL16.name), op.input_maps[operand].data
    extent = op.space.extents[summed]
    dim = next((d for d, e in enumerate(index) if any(n == summed for n, _ in e.terms)), 0)
    covers = len(index[dim].terms) == 1 and index[dim].const == 0 and extent == versions.shape[dim]
    if extent % lanes_of(versions.format) == 0 or covers:
        return p.operand(versions, index, lane, op.space.data)
    copied, own = p.copied(versions, index, op.space.data)
    stick = stick_for(own, lane, lanes_of(copied.format))
    return p.buffer(copied, UNIT if stick is None else stick), own


def lower_gather(p: LayoutPlanner, op: loop.LoopGatherOp, spec: SpyreSpec) -> None:
    """Lower rows of a table: the indexed dimension outermost, another one in the lanes.

    Decision: docs/decisions/0194-rows-are-gathered-in-parts.md
    """
    index_map, table_map, out_map = (m.data for m in op.maps)
    form = FP32.name if keeps_float32(p, op, element_of(op.table)) else DL16.name
    if is_integer(element_of(op.table)) and not inside(p.ranges.of(op.table), NARROW):
        form = FP32.name
    if not (possible := gathered_lanes(op, form)):
        raise UnsupportedError(
            "a gather of rows of one element: no loop can walk the lanes of both table and result",
            hint="use a table with two columns or more",
        )
    lane, _ = allowed_lanes(op, [(lane, made) for lane, (_, made) in possible])[0]
    p.chosen.lanes[op], sticks = lane, next(sticks for name, sticks in possible if name == lane)
    source, indices, loops = p.form(op.table, form), p.of(op.indices), op.space.data
    if lane is not None and (count := _parts_of_rows(op, source, indices, lane, spec)) > 1:
        width = source.shape[1] // count
        source, indices = _in_parts(source, count), _named_by_parts(indices, count)
        loops = (IterDim(_PART, count), *(replace(d, extent=width) if d.name == lane else d for d in loops))
        index_map = (LinearExpr.of(_PART), *index_map)
        column = LinearExpr(0, ((_PART, width), (lane, 1)))
        out_map = tuple(e.at({**{d.name: LinearExpr.of(d.name) for d in loops}, lane: column}) for e in out_map)
    table = _from_host(p, source, StickLayout.rows_outermost(source.shape, sticks[0], block_of(source.format)))
    if table.layout.order[0] != op.axis.value.data:
        raise UnsupportedError(f"a gather along dimension {op.axis.value.data} of a table of shape {table.shape}")
    numbers = _from_host(p, indices, StickLayout.of_indices(indices.shape, block_of(indices.format)))
    numbers.rows = shape_of(op.table)[op.axis.value.data] if op.from_end is not None else None
    _check_indices(numbers, index_map, {d.name: d.extent for d in loops})
    versions = p.of(op.result)
    versions.format = form
    p.chosen.made[op] = put_in_order(op, p.fresh(versions.shape, form, sticks[1]))
    versions.buffers.append(p.chosen.made[op])
    p.step(
        GATHER_STEP,
        loops,
        [(numbers, index_map), (table, table_map)],
        (versions.buffers[0], out_map),
        axis=op.axis.value.data,
    )


def _parts_of_rows(op: loop.LoopGatherOp, table: DeviceForms, indices: DeviceForms, lane: str, spec: SpyreSpec) -> int:
    """Into how many parts the rows of a table are taken; 1 unless the host lays out a table of whole DL16 sticks."""
    table_map = op.maps.data[1].data
    sent = all(v.host is not None and not v.placed for v in (table, indices))
    own = LinearExpr.of(lane)
    if not sent or table.format != DL16.name or hint_of(op) is not None or table_map != (LinearExpr(0), own):
        return 1
    columns, block = table.shape[1], block_of(table.format)
    if op.space.extents[lane] != columns or columns % block or not indices.shape:
        return 1
    return parts_of_rows(indices.shape, columns // block, lanes_of(indices.format), spec)


def _in_parts(table: DeviceForms, count: int) -> DeviceForms:
    """A table of rows in so many parts, one behind the other, which the host rearranges."""
    rows, width = table.shape[0], table.shape[1] // count
    loops = (("row", rows), (_PART, count), ("column", width))
    row, column = LinearExpr.of("row"), LinearExpr.of("column")
    source = (row, LinearExpr(0, ((_PART, width), ("column", 1))))
    target = (LinearExpr(0, (("row", count), (_PART, 1))), column)
    move = Move(loops, source, target, (rows * count, width))
    return replace(table, shape=move.shape, moves=(*table.moves, move), buffers=[])


def _named_by_parts(indices: DeviceForms, count: int) -> DeviceForms:
    """Indices of the parts of rows."""
    step = RowParts(count)
    return replace(indices, shape=step.shape(indices.shape), moves=(*indices.moves, step), buffers=[])


def _check_indices(indices: PlannedBuffer, index_map: IndexMap, extents: Mapping[str, int]) -> None:
    """Raises UnsupportedError unless the indices can be read where the host puts them; no function copies integers."""
    try:
        access(indices.layout, indices.lanes, index_map, extents)
    except StickError as error:
        raise UnsupportedError(
            f"a gather by a part of an index tensor: {error}", hint="pass the part as an input of its own"
        ) from error


def gathered_lanes(op: loop.LoopGatherOp, form: str) -> list[tuple[str, tuple[int, int]]]:
    """Return the loops that can walk the lanes of table and result, with the stick dimensions of both."""
    tried = [(d, _gather_sticks(op, d, block_of(form))) for d in candidates(op.space.data) if d is not None]
    return [(lane, sticks) for lane, sticks in tried if sticks is not None]


def _gather_sticks(op: loop.LoopGatherOp, lane: str, lanes: int) -> tuple[int, int] | None:
    """The stick dimensions of table and result, if `lane` can walk the lanes of both."""
    _, table_map, out_map = (m.data for m in op.maps)
    table, out = stick_for(table_map, lane, lanes), stick_for(out_map, lane, lanes)
    if table is None or table == UNIT or out is None:
        return None
    return (table, out) if may_write(out_map, shape_of(op.result), lane, op.space.extents, lanes) else None


def _from_host(p: LayoutPlanner, versions: DeviceForms, layout: StickLayout) -> PlannedBuffer:
    """A form of the tensor that the host puts in the layout that a gather asks for."""
    if versions.host is None:
        raise UnsupportedError(
            "a gather whose table or indices the program computes", hint="both must be weights or inputs for now"
        )
    if versions.placed:
        return p.laid_out(versions, layout)
    made = p.define(
        PlannedBuffer(
            versions.shape,
            versions.format,
            layout,
            versions.host,
            zero_padding=versions.prepared,
            elements=versions.elements,
            moves=versions.moves,
        )
    )
    versions.buffers.append(made)
    return made


def check_table(p: LayoutPlanner, spec: SpyreSpec) -> None:
    """Raises UnsupportedError unless a core reaches the whole table in the form that the gather reads."""
    step = p.items[-1]
    table = step.inputs[1][0] if isinstance(step, PlannedKernel) else None
    reason = None if table is None else table_beyond_reach(table.sticks * STICK_BYTES, spec)
    if reason is not None:
        raise UnsupportedError(reason, hint="split the table in the model")


def lower_constant(p: LayoutPlanner, op: loop.LoopConstantOp) -> None:
    """Lower constant numbers, which the host provides in any requested layout."""
    versions = p.of(op.result)
    versions.constant = op.value
    if is_integer(element_of(op.result)):
        versions.format = (DL16 if inside(p.ranges.of(op.result), NARROW) else FP32).name


__all__ = [
    "COLUMNS",
    "check_table",
    "fillable_sticks",
    "gathered_lanes",
    "lower_constant",
    "lower_empty",
    "lower_gather",
    "lower_nest",
]
