"""Rows of a table: a gather where the hardware can, else a product with a matrix of zeros and ones."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import FloatAttr, IntegerType, TensorType, f64, i1
from xdsl.ir import Attribute, BlockArgument

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IotaAttr
from spyre_mlir.dialects.spyre.loop import ConstantOp, GatherOp
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops import pointwise
from spyre_mlir.ops.index_view import IndexView, NotAView
from spyre_mlir.transforms.nests import Reading, align, whole
from spyre_mlir.transforms.products import lower_product

if TYPE_CHECKING:
    from spyre_mlir.transforms.convert_aten_to_spyre_loop import LoopBuilder

# Computed row numbers are DL16 numbers, and those hold every whole number up to this one (nine fraction bits).
MOST_COMPARED_ROWS = 1024


def lower_rows(b: LoopBuilder, table: Reading, indices: Reading, result: TensorType[Attribute]) -> Reading:
    """The rows of `table` that `indices` name, in the shape [indices…, row…].

    The hardware gathers with a table and indices that come from the host. Everything else compares the indices
    with the row numbers, which is exact as long as the table holds no infinity or NaN; an index outside the
    table gives NaN there, as no row number equals it.

    Raises:
        UnsupportedError: the indices or the table are computed, and the table has too many rows to compare.
    """
    host = isinstance(table.base, BlockArgument) and isinstance(indices.base, BlockArgument)
    whole_numbers = isinstance(element_of(indices.base), IntegerType) and element_of(indices.base) != i1
    if host and table.is_base and len(table.shape) == 2 and whole_numbers:
        return _gather(b, table, indices, result)
    if table.shape[0] > MOST_COMPARED_ROWS:
        raise UnsupportedError(
            f"{table.shape[0]} rows chosen by computed indices, or from a computed table",
            hint=f"up to {MOST_COMPARED_ROWS} rows are possible; beyond, make indices inputs and tables weights",
        )
    element = element_of(table.base)
    if isinstance(element, IntegerType) and element != i1:
        return _by_selection(b, table, indices, result)
    return _by_product(b, table, indices, result)


def _gather(b: LoopBuilder, table: Reading, indices: Reading, result: TensorType[Attribute]) -> Reading:
    rank = len(result.get_shape())
    at_indices = indices.view.unsqueeze(rank - 1).expand(result.get_shape())
    at_row = table.view.select(0, 0).expand(result.get_shape())
    loops = align([at_indices, at_row, IndexView.identity(result.get_shape())], [f"d{i}" for i in range(rank)])
    gather = GatherOp(loops.space(), indices.base, table.base, 0, [IndexMapAttr(m) for m in loops.maps], result)
    return whole(b.emitter.add(gather).results[0])


def _by_selection(b: LoopBuilder, table: Reading, indices: Reading, result: TensorType[Attribute]) -> Reading:
    """Rows of integers, which a product would round: sums of the table with all other rows set to 0."""
    rows, width, chosen = table.shape[0], prod(table.shape[1:]), prod(indices.shape)
    element, number = element_of(table.base), element_of(indices.base)
    counting = IotaAttr(FloatAttr(0.0, f64), FloatAttr(1.0, f64))
    numbers = whole(b.emitter.add(ConstantOp(counting, TensorType(number, [rows]))).results[0])
    hits = b.pointwise(pointwise.eq, [_reshaped(b, indices, (chosen, 1)), numbers], TensorType(i1, [chosen, rows]))
    entries = _reshaped(b, table, (rows, width))
    entries = Reading(entries.base, entries.view.transpose(0, 1))
    hits = Reading(hits.base, hits.view.unsqueeze(1))
    picked = b.pointwise(
        pointwise.where, [hits, entries, b.reading(0, element)], TensorType(element, [chosen, width, rows])
    )
    return _reshaped(b, b.summed(picked), result.get_shape())


def _by_product(b: LoopBuilder, table: Reading, indices: Reading, result: TensorType[Attribute]) -> Reading:
    rows, width, chosen = table.shape[0], prod(table.shape[1:]), prod(indices.shape)
    element = element_of(table.base)
    counting = IotaAttr(FloatAttr(0.0, f64), FloatAttr(1.0, f64))
    numbers = whole(b.emitter.add(ConstantOp(counting, TensorType(element_of(indices.base), [rows]))).results[0])
    wanted = _reshaped(b, indices, (chosen, 1))
    hits = b.pointwise(pointwise.eq, [wanted, numbers], TensorType(i1, [chosen, rows]))
    ones = b.converted(hits, element)
    product = lower_product(b, ones, _reshaped(b, table, (rows, width)), TensorType(element, [chosen, width]))
    # A row that no number equals is 0 over 0: the wrong index shows, instead of passing for a row of zeros.
    column = whole(b.emitter.add(ConstantOp(FloatAttr(1.0, f64), TensorType(element, [rows, 1]))).results[0])
    found = lower_product(b, ones, column, TensorType(element, [chosen, 1]))
    checked = b.pointwise(pointwise.div, [product, found], TensorType(element, [chosen, width]))
    return _reshaped(b, checked, result.get_shape())


def _reshaped(b: LoopBuilder, reading: Reading, shape: tuple[int, ...]) -> Reading:
    try:
        return Reading(reading.base, reading.view.reshape(shape))
    except NotAView:
        fresh = b.copy(reading)
        return Reading(fresh.base, fresh.view.reshape(shape))
