"""Rows of a table: a gather where the hardware supports it, else a matmul with a matrix of zeros and ones.

Decision: docs/decisions/0094-tables-beyond-reach.md
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerType, TensorType, UnitAttr, f32, f64, i1
from xdsl.ir import Attribute, BlockArgument

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.loop import LoopConstantOp, LoopGatherOp
from spyre_mlir.dialects.spyre.named_values import IotaAttr
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import INDEX
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr, StickError, StickLayout, access
from spyre_mlir.ops.helpers.index_matching import MOST_COMPARISONS
from spyre_mlir.ops.index_views import IndexView, NotAView
from spyre_mlir.ops.native import pointwise, reductions
from spyre_mlir.transforms.aten_to_loop.contractions import lower_product
from spyre_mlir.transforms.aten_to_loop.loop_builder import LoopBuilder
from spyre_mlir.transforms.aten_to_loop.nests import NestLoops, TensorView, align, whole
from spyre_mlir.transforms.loop_to_kernel.buffers import stored_format
from spyre_mlir.transforms.loop_to_kernel.layout_planner import block_of, lanes_of
from spyre_mlir.transforms.loop_to_kernel.settling.reachable_layouts import table_beyond_reach
from spyre_mlir.transforms.utils.numerics.integer_ranges import is_integer


def lower_rows(
    b: LoopBuilder, table: TensorView, indices: TensorView, result: TensorType[Attribute], *, from_end: bool = False
) -> TensorView:
    """Return the rows of `table` that `indices` name, in the shape [indices…, row…].

    The hardware gathers with indices that come from the host, if they are read stick by stick. Everything else compares
    the indices with the row numbers, which is exact as long as the table holds no infinity or NaN; an index outside the
    table gives NaN there, as no row number equals it.

    Raises:
        UnsupportedError: the hardware cannot gather here, and there are too many rows and indices to compare.
    """
    if _can_gather(table, indices):
        loops = _gather_loops(table, indices, result)
        if _read_by_sticks(indices, loops):
            return _gather(b, table, indices, result, loops, from_end)
    if from_end:
        indices = _wrapped(b, indices, table.shape[0])
    if element_of(table.base) == i1:
        floats = TensorType(f32, result.get_shape())
        rows = lower_rows(b, b.converted(table, f32), indices, floats)
        return b.pointwise(pointwise.ne, [rows, b.reading(0.0, f32)], result)
    if (wanted := table.shape[0] * prod(indices.shape)) > MOST_COMPARISONS:
        raise UnsupportedError(
            f"{wanted:,} comparisons of rows with indices, as those or the table are computed, or a part of an input",
            hint=f"up to {MOST_COMPARISONS:,} are possible; beyond, make indices whole inputs and tables weights",
        )
    if element_of(table.base) != result.get_element_type() or isinstance(result.get_element_type(), IntegerType):
        return _by_selection(b, table, indices, result)
    return _by_product(b, table, indices, result)


def lower_pages(b: LoopBuilder, pages: TensorView, indices: TensorView, result: TensorType[Attribute]) -> TensorView:
    """Return for each head the places of the pages that `indices` name, those of a row of indices joined.

    A gather writes them so, also of one head of a cache. Negative indices count from the end.

    Raises:
        UnsupportedError: as for `lower_rows`.
    """
    _, places, heads, features = pages.shape
    apart = TensorType(result.get_element_type(), [*indices.shape, places, heads, features])
    if _can_gather(whole(pages.base) if _is_head(pages) else pages, indices):
        loops = _gather_loops(pages, indices, apart)
        if _read_by_sticks(indices, loops):
            *first, page, place, head, feature = loops.maps[2]
            joined = LinearExpr(0, (*((name, step * places) for name, step in page.terms), *place.terms))
            maps = (*loops.maps[:2], (*first, head, joined, feature))
            return _gather(b, pages, indices, result, replace(loops, maps=maps), True)
    rows, rank = lower_rows(b, pages, indices, apart, from_end=True), len(indices.shape)
    turned = (*range(rank - 1), rank + 1, rank - 1, rank, rank + 2)
    return _reshaped(b, TensorView(rows.base, rows.view.permute(turned)), result.get_shape())


def _can_gather(table: TensorView, indices: TensorView) -> bool:
    """Return whether both have a gather's layouts: the host sends them, or kernels lay out a table of floats.

    One-element rows have no dimension for the lanes.
    """
    laid_out = isinstance(table.base, BlockArgument) or isinstance(element_of(table.base), AnyFloat)
    whole_rows = table.is_base and prod(table.shape[1:]) > 1
    return laid_out and whole_rows and isinstance(indices.base, BlockArgument) and is_integer(element_of(indices.base))


def _is_head(pages: TensorView) -> bool:
    """Return whether a view is one head of all pages of a cache, a table of its own if heads are outermost."""
    cache, head = IndexView.identity(pages.view.base), pages.shape[2]
    if len(cache.shape) != len(pages.shape) or head != 1:
        return False
    at = pages.view.offsets[2]
    return pages.view == cache.slice(2, at, at + 1)


def beyond_reach(table: TensorView, indices: TensorView, spec: SpyreSpec) -> str | None:
    """Return why the host selects the rows of a table; None if the device can.

    All cores gather from one start, and any of them may be asked for any row: the whole table has to be in reach.
    """
    if not _can_gather(table, indices):
        return None
    form = stored_format(element_of(table.base))
    layout = StickLayout.rows_outermost(table.shape, len(table.shape) - 1, block_of(form))
    return table_beyond_reach(layout.sticks(lanes_of(form)) * STICK_BYTES, spec)


def _gather_loops(table: TensorView, indices: TensorView, result: TensorType[Attribute]) -> NestLoops:
    """The loops over the result; their maps are of the indices, of the table, and of the result."""
    rank = len(result.get_shape())
    at_indices = indices.view
    for at in range(len(indices.shape), rank):
        at_indices = at_indices.unsqueeze(at)
    at_indices = at_indices.expand(result.get_shape())
    at_row = table.view.select(0, 0).expand(result.get_shape())
    return align([at_indices, at_row, IndexView.identity(result.get_shape())], [f"d{i}" for i in range(rank)])


def _read_by_sticks(indices: TensorView, loops: NestLoops) -> bool:
    """Return whether the indices can be read where the host puts them; no function copies integers of their format."""
    lanes = INDEX.elements_per_stick()
    try:
        access(StickLayout.of_indices(shape_of(indices.base), lanes), lanes, loops.maps[0], loops.space().extents)
    except StickError:
        return False
    return True


def _gather(
    b: LoopBuilder,
    table: TensorView,
    indices: TensorView,
    result: TensorType[Attribute],
    loops: NestLoops,
    from_end: bool,
) -> TensorView:
    gather = LoopGatherOp(loops.space(), indices.base, table.base, 0, [IndexMapAttr(m) for m in loops.maps], result)
    if from_end:
        gather.from_end = UnitAttr()
    return whole(b.emitter.add(gather).results[0])


def _by_selection(b: LoopBuilder, table: TensorView, indices: TensorView, result: TensorType[Attribute]) -> TensorView:
    """Whole numbers stay exact: elements are selected and folded, where a product would round them."""
    rows, width, chosen = table.shape[0], prod(table.shape[1:]), prod(indices.shape)
    element = element_of(table.base)
    hits = b.pointwise(
        pointwise.eq,
        [_reshaped(b, indices, (chosen, 1, 1)), _counting(b, indices, rows)],
        TensorType(i1, [chosen, 1, rows]),
    )
    flat = _reshaped(b, table, (rows, width))
    columns = TensorView(flat.base, flat.view.transpose(0, 1))
    kept = b.pointwise(
        pointwise.where, [hits, columns, b.reading(0.0, element)], TensorType(element, [chosen, width, rows])
    )
    return _reshaped(b, b.reduced(kept, 2, reductions.sum), result.get_shape())


def _wrapped(b: LoopBuilder, indices: TensorView, rows: int) -> TensorView:
    """Indices of `rows` rows, negative ones counted from the end."""
    element = element_of(indices.base)
    same, truth = TensorType(element, indices.shape), TensorType(i1, indices.shape)
    negative = b.pointwise(pointwise.lt, [indices, b.reading(0.0, element)], truth)
    counted = b.pointwise(pointwise.add, [indices, b.reading(float(rows), element)], same)
    return b.pointwise(pointwise.where, [negative, counted, indices], same)


def _counting(b: LoopBuilder, like: TensorView, rows: int) -> TensorView:
    counting = IotaAttr(FloatAttr(0.0, f64), FloatAttr(1.0, f64))
    return whole(b.emitter.add(LoopConstantOp(counting, TensorType(element_of(like.base), [rows]))).results[0])


def _by_product(b: LoopBuilder, table: TensorView, indices: TensorView, result: TensorType[Attribute]) -> TensorView:
    rows, width, chosen = table.shape[0], prod(table.shape[1:]), prod(indices.shape)
    element = element_of(table.base)
    numbers = _counting(b, indices, rows)
    wanted = _reshaped(b, indices, (chosen, 1))
    hits = b.pointwise(pointwise.eq, [wanted, numbers], TensorType(i1, [chosen, rows]))
    ones = b.converted(hits, element)
    product = lower_product(b, ones, _reshaped(b, table, (rows, width)), TensorType(element, [chosen, width]))
    # A row that no number equals is 0 over 0: the wrong index shows, instead of passing for a row of zeros.
    column = whole(b.emitter.add(LoopConstantOp(FloatAttr(1.0, f64), TensorType(element, [rows, 1]))).results[0])
    found = lower_product(b, ones, column, TensorType(element, [chosen, 1]))
    checked = b.pointwise(pointwise.div, [product, found], TensorType(element, [chosen, width]))
    return _reshaped(b, checked, result.get_shape())


def _reshaped(b: LoopBuilder, reading: TensorView, shape: tuple[int, ...]) -> TensorView:
    try:
        return TensorView(reading.base, reading.view.reshape(shape))
    except NotAView:
        fresh = b.copy(reading)
        return TensorView(fresh.base, fresh.view.reshape(shape))
