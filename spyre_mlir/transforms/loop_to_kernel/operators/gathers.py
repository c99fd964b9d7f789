"""Gathers of rows as planned kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import DL16, FP32
from spyre_mlir.hw.moves import RowParts
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, StickError, StickLayout, access
from spyre_mlir.planning.row_parts import parts_of_rows
from spyre_mlir.transforms.loop_to_kernel.buffers import PartsBuffer, PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.choose_lane import (
    candidates,
)
from spyre_mlir.transforms.loop_to_kernel.data_formats import (
    keeps_float32,
)
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.gather_lanes import entry_dims, gather_sticks, joined_loops, table_layout
from spyre_mlir.transforms.loop_to_kernel.kernel_ops import GATHER_STEP
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, block_of, lanes_of
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import (
    allowed_lanes,
    put_in_order,
)
from spyre_mlir.transforms.loop_to_kernel.settling.reachable_layouts import table_beyond_reach
from spyre_mlir.transforms.utils.numerics.integer_ranges import (
    NARROW,
    inside,
    is_integer,
)

_PART = "part"  # the loop over parts of the rows of a table


def lower_gather(p: LayoutPlanner, op: loop.LoopGatherOp, spec: SpyreSpec) -> None:
    """Lower rows of a table: the indexed dimension outermost, another one in the lanes.

    Decision: docs/decisions/0194-rows-are-gathered-in-parts.md
    """
    form = _form(p, op)
    if not (possible := gathered_lanes(op, form)):
        raise UnsupportedError(
            "a gather of rows of one element: no loop can walk the lanes of both table and result",
            hint="use a table with two columns or more",
        )
    table = p.form(op.table, form)
    # A table that lies on the card already is read as it lies: it may be much larger than the rows.
    possible = sorted(possible, key=lambda found: bool(table.buffers) and table.find(found[1][0]) is None)
    # Gathers of one entry have siblings: they share the table, and no search would lay it out again for all of them.
    apart = bool(entry_dims(op, StickLayout.rows_outermost(shape_of(op.table), UNIT, block_of(form))))
    if apart and not table.buffers:
        possible = sorted(possible, key=lambda found: p.later(op.result, found[1][1]))
    lane, _ = allowed_lanes(op, [(lane, made) for lane, (_, made) in possible])[0]
    p.chosen.lanes[op], sticks = lane, next(sticks for name, sticks in possible if name == lane)
    layout = table_layout(op, StickLayout.rows_outermost(shape_of(op.table), sticks[0], block_of(form)))
    lying = (_lies_so(table, layout) if apart else None) or _table(p, table, layout)
    axis = op.axis.value.data
    outermost = next(d for d in lying.layout.order if d not in entry_dims(op, lying.layout))
    if outermost != axis:
        raise UnsupportedError(f"a gather along dimension {axis} of a table of shape {lying.shape}")
    rows = _in_parts(p, op, _Rows(lying, p.of(op.indices), op.space.data, *(m.data for m in op.maps)), spec)
    counted = shape_of(op.table)[axis] if op.from_end is not None else None
    in_lanes = StickLayout.of_indices(rows.indices.shape, block_of(rows.indices.format))
    sent = _lies_so(rows.indices, in_lanes) if apart else None
    numbers = sent if sent is not None and sent.rows == counted else _from_host(p, rows.indices, in_lanes)
    numbers.rows = counted
    _check_indices(numbers, rows.index_map, {d.name: d.extent for d in rows.loops})
    versions = p.of(op.result)
    versions.format = form
    made = p.fresh(versions.shape, form, sticks[1])
    made.layout = _batches_outermost(op, lying.layout, made.layout)
    p.chosen.made[op] = put_in_order(op, made)
    versions.buffers.append(p.chosen.made[op])
    operands = [(numbers, rows.index_map), (rows.table, rows.table_map)]
    p.step(GATHER_STEP, rows.loops, operands, (versions.buffers[0], rows.out_map), axis=axis)


def _batches_outermost(op: loop.LoopGatherOp, table: StickLayout, result: StickLayout) -> StickLayout:
    """The layout of a result that joins pages: heads and what indices count outermost, as they are batches of products.

    Results that readers compute element by element lie so too, and take the place of this one in the scratchpads.
    """
    if not (joined := joined_loops(op)):
        return result
    indices, read, written = (m.data for m in op.maps)
    heads = {name for d in table.order[1:2] for name, _ in read[d].terms}
    counted = {name for e in indices for name, _ in e.terms}

    def place(dim: int) -> int:
        """Heads, what indices count, the joined places and all else, and the lanes."""
        walked = {name for name, _ in written[dim].terms}
        if dim == result.stick:
            return 3
        if walked & joined:
            return 2
        return 0 if walked & heads else 1 if walked & counted else 2

    return replace(result, order=tuple(sorted(result.order, key=place)))


def _form(p: LayoutPlanner, op: loop.LoopGatherOp) -> str:
    """The format of the table on the device."""
    wide_integers = is_integer(element_of(op.table)) and not inside(p.ranges.of(op.table), NARROW)
    return FP32.name if wide_integers or keeps_float32(p, op, element_of(op.table)) else DL16.name


@dataclass(frozen=True)
class _Rows:
    """What a gather reads, the loops that walk it, and where indices, table and result are read and written."""

    table: PlannedBuffer
    indices: DeviceForms
    loops: tuple[IterDim, ...]
    index_map: IndexMap
    table_map: IndexMap
    out_map: IndexMap

    def parted_dim(self, axis: int) -> int | None:
        """The dimension that lies next to the rows of the table, if its parts lie one behind the other like rows.

        A loop has to walk all of it. Whole sticks are parted in the lanes.
        """
        buffer, lanes = self.table, self.table.lanes
        layout, extents = buffer.layout, {d.name: d.extent for d in self.loops}
        dim = next((d for d in layout.order if d != axis and layout.count(d, lanes) > 1), UNIT)
        if dim == UNIT or layout.extents[dim] != buffer.shape[dim]:
            return None
        expr = self.table_map[dim]
        alone = len(expr.terms) == 1 and expr == LinearExpr.of(expr.terms[0][0])
        return dim if alone and extents[expr.terms[0][0]] == buffer.shape[dim] else None

    def _last_index(self) -> int:
        """Where the loop is that walks the lanes of indices."""
        named = {name for name, _ in self.index_map[-1].terms}
        return next((n for n, d in enumerate(self.loops) if d.name in named), 0)

    def in_parts(self, table: PartsBuffer) -> _Rows:
        """Return the gather of a table of parts of rows, walked by one more loop."""
        width, walked, part = table.shape[table.dim], self.table_map[table.dim].terms[0][0], IterDim(_PART, table.count)
        if width == 1:  # Cores are counted in the order of loops: they have the heads that those of a product have.
            at = self._last_index()
            loops = (*self.loops[:at], part, *(d for d in self.loops[at:] if d.name != walked))
            place, inner = LinearExpr.of(_PART), LinearExpr()
        else:
            loops = (part, *(replace(d, extent=width) if d.name == walked else d for d in self.loops))
            place, inner = LinearExpr(0, ((_PART, width), (walked, 1))), LinearExpr.of(walked)
        same = {d.name: LinearExpr.of(d.name) for d in loops}
        out_map = tuple(e.at({**same, walked: place}) for e in self.out_map)
        table_map = tuple(e.at({**same, walked: inner}) for e in self.table_map)
        index_map = (LinearExpr.of(_PART), *self.index_map)
        return _Rows(table, _named_by_parts(self.indices, table.count), loops, index_map, table_map, out_map)


def _in_parts(p: LayoutPlanner, op: loop.LoopGatherOp, rows: _Rows, spec: SpyreSpec) -> _Rows:
    """The gather of parts of rows where more cores can share those; the host names them in place of the rows."""
    axis, table, indices = op.axis.value.data, rows.table, rows.indices
    sent = indices.host is not None and not indices.placed and bool(indices.shape)
    if not sent or table.format != DL16.name or hint_of(op) is not None or axis != 0:
        return rows
    dim = rows.parted_dim(axis)
    if dim is None:
        return rows
    row = table.sticks // table.layout.extents[axis]
    pieces = table.layout.count(dim, table.lanes)
    walked, joined = {name for name, _ in rows.table_map[dim].terms}, joined_loops(op)
    heads = bool(joined) and dim != table.layout.stick and joined.isdisjoint(walked)
    # Readers divide heads among the cores, so that each is a part even if that makes no gather quicker.
    count = pieces if heads else parts_of_rows(indices.shape, row, pieces, lanes_of(indices.format), spec)
    if count == 1:
        return rows
    parts = PartsBuffer(table, axis, dim, count)
    p.define(parts)
    return rows.in_parts(parts)


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
    tried = [(d, gather_sticks(op, d, block_of(form))) for d in candidates(op.space.data) if d is not None]
    return [(lane, sticks) for lane, sticks in tried if sticks is not None]


def _table(p: LayoutPlanner, versions: DeviceForms, layout: StickLayout) -> PlannedBuffer:
    """A table in the layout that a gather asks for: kernels lay out one that the program computes."""
    return p.laid_out(versions, layout) if versions.host is None else _from_host(p, versions, layout)


def _lies_so(versions: DeviceForms, layout: StickLayout) -> PlannedBuffer | None:
    """A form of a tensor that has been made in a layout."""
    return next((b for b in versions.buffers if b.layout.lies_as(layout, b.lanes)), None)


def _from_host(p: LayoutPlanner, versions: DeviceForms, layout: StickLayout) -> PlannedBuffer:
    """A form of the tensor that the host puts in the layout that a gather asks for."""
    if versions.host is None:
        raise UnsupportedError("a gather whose indices the program computes", hint="make them an input")
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


def check_table(p: LayoutPlanner, op: loop.LoopGatherOp, spec: SpyreSpec) -> None:
    """Raises UnsupportedError unless a core reaches all rows of the table in the form that the gather reads."""
    step = p.items[-1]
    table = step.inputs[1][0] if isinstance(step, PlannedKernel) else None
    if table is None:
        return
    layout, strides = table.layout, table.layout.strides(table.lanes)
    walked = [d for d in layout.order if d not in entry_dims(op, layout)]
    last = sum((layout.count(d, table.lanes) - 1) * strides[d] for d in walked)
    if (reason := table_beyond_reach((last + 1) * STICK_BYTES, spec)) is not None:
        raise UnsupportedError(reason, hint="split the table in the model")


__all__ = ["check_table", "gathered_lanes", "lower_gather"]
