"""Matmuls as nests: assignment of loops to batches, rows, columns, and the summed one.

Decision: docs/decisions/0211-heads-of-batches-are-turned-in-place.md
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.index_views import IndexView, NotAView
from spyre_mlir.ops.native import pointwise, reductions
from spyre_mlir.transforms.aten_to_loop.loop_builder import LoopBuilder
from spyre_mlir.transforms.aten_to_loop.nests import (
    NestLoops,
    TensorView,
    absent,
    factors,
    index_map,
    make_nest,
    names_for,
    refine_together,
    whole,
)

# What one hardware product can say (interface specification, stick constraints; certain): at most two
# loops the second operand lacks, and at most two that all three operands have.
MOST_ROW_LOOPS = 2
MOST_BATCH_LOOPS = 2

# Columns up to which a product in batches, at 267 multiply-adds per nanosecond and core instead of 1,140, takes less
# time than a copy of its rows, which is written and read.
MOST_COLUMNS_IN_BATCHES = 256

# Products of integers that are kept until they are added up: 64 MiB of them.
MOST_WHOLE_PRODUCTS = 2**24


def lower_product(b: LoopBuilder, left: TensorView, right: TensorView, result: TensorType[Attribute]) -> TensorView:
    """Lower left [batch…, m, k] times right [batch…, k, n].

    Operands whose views cut or repeat k or n, or that need more loops than the hardware has, are copied first: the
    rows of all batches to one matrix where they share the right operand.
    """
    batch = result.get_shape()[:-2]
    left = TensorView(left.base, left.view.expand((*batch, *left.shape[-2:])))
    right = TensorView(right.base, right.view.expand((*batch, *right.shape[-2:])))
    left, right = _single_loops(b, left, right)
    try:
        loops = _loops(left.view, right.view)
    except NotAView:
        left, right = b.copy(left), b.copy(right)
        loops = _loops(left.view, right.view)
    if not _fits(loops):
        shared = len(left.shape) > 2 and all(absent(right.view, d) for d in range(len(left.shape) - 2))
        if not shared:
            return _flat_product(b, left, right, result)
        return _product_in_batches(b, left, right, result) or _product_of_rows(b, left, right, result)
    return _emit(b, left, right, loops, result)


def lower_whole_product(
    b: LoopBuilder, left: TensorView, right: TensorView, result: TensorType[Attribute]
) -> TensorView:
    """Lower a matmul of integers: all products first, then their sums, because the matrix unit rounds to DL16.

    Raises:
        UnsupportedError: there are too many products to keep.
    """
    shape, summed = result.get_shape(), left.shape[-1]
    if (wanted := prod(shape) * summed) > MOST_WHOLE_PRODUCTS:
        raise UnsupportedError(
            f"a product of integers with {wanted:,} products",
            hint=f"up to {MOST_WHOLE_PRODUCTS:,} are possible; convert the operands to floats if they are small",
        )
    rows = TensorView(left.base, left.view.unsqueeze(len(left.shape) - 1))
    columns = TensorView(right.base, right.view.transpose(-1, -2))
    columns = TensorView(columns.base, columns.view.unsqueeze(len(right.shape) - 2))
    every = b.pointwise(pointwise.mul, [rows, columns], TensorType(result.get_element_type(), [*shape, summed]))
    folded = b.reduced(every, len(shape), reductions.sum)
    return TensorView(folded.base, folded.view.squeeze((len(shape),)))


def _single_loops(b: LoopBuilder, left: TensorView, right: TensorView) -> tuple[TensorView, TensorView]:
    """Copies operands whose summed or column dimension is more than one loop, or that both are cut in."""
    rank = len(left.shape)
    if len(left.view.dims[-1]) > 1 or any(absent(left.view, d) for d in (rank - 2, rank - 1)):
        left = _copied_once(b, left)
    if any(len(right.view.dims[d]) > 1 or absent(right.view, d) for d in (rank - 2, rank - 1)):
        right = _copied_once(b, right)
    # A batch that only the second operand has would be a second column loop: give it to the first as well.
    if any(absent(left.view, d) and not absent(right.view, d) for d in range(rank - 2)):
        left = b.copy(left)
    return left, right


def _copied_once(b: LoopBuilder, reading: TensorView) -> TensorView:
    """A copy that has a repeated batch once: a weight is copied as it is, whatever it is multiplied with."""
    view = reading.view
    for d in range(len(reading.shape) - 2):
        view = view.slice(d, 0, 1) if absent(view, d) else view
    made = b.copy(TensorView(reading.base, view))
    return TensorView(made.base, made.view.expand(reading.shape))


def _loops(left: IndexView, right: IndexView) -> NestLoops:
    """Loops batch…, m, n, k; the maps of left and right.

    Raises:
        NotAView: the operands cut a batch in ways that do not divide one another.
    """
    rank = len(left.shape)
    for dim in range(rank - 2):
        left, right = refine_together([left, right], dim)
    parts = [(f"b{d}", left.dims[d], right.dims[d], factors(left, d)) for d in range(rank - 2)]
    parts.append(("m", left.dims[-2], (), factors(left, rank - 2)))
    parts.append(("n", (), right.dims[-1], factors(right, rank - 1)))
    parts.append(("k", left.dims[-1], right.dims[-2], factors(left, rank - 1)))
    of_left, of_right, names = dict[int, str](), dict[int, str](), list[tuple[str, ...]]()
    for stem, l_axes, r_axes, extents in parts:
        own = tuple(names_for(stem, len(extents)))
        names.append(own)
        of_left.update(zip(l_axes, own, strict=False))
        of_right.update(zip(r_axes, own, strict=False))
    maps = (index_map(left, of_left), index_map(right, of_right))
    return NestLoops(tuple(names), tuple(tuple(p[3]) for p in parts), maps)


def _fits(loops: NestLoops) -> bool:
    in_left = {n for e in loops.maps[0] for n, _ in e.terms}
    in_right = {n for e in loops.maps[1] for n, _ in e.terms}
    outer = [n for names in loops.names[:-2] for n in names]
    rows = [n for n in outer if n not in in_right]
    shared = [n for n in outer if n in in_right]
    return len(rows) <= MOST_ROW_LOOPS and len(shared) <= MOST_BATCH_LOOPS and all(n in in_left for n in outer)


def _product_of_rows(b: LoopBuilder, left: TensorView, right: TensorView, result: TensorType[Attribute]) -> TensorView:
    """The same product of a matrix that all batches share: their rows are those of one matrix, in a copy."""
    batches = range(len(left.shape) - 2)
    view = right.view
    for d in batches:
        view = view.slice(d, 0, 1)
    right = TensorView(right.base, view.squeeze(tuple(batches)))
    rows = b.shared_copy(left, (prod(left.shape[:-1]), left.shape[-1]))
    flat = TensorType(result.get_element_type(), [rows.shape[0], right.shape[-1]])
    made = _emit(b, rows, right, _loops(rows.view, right.view), flat)
    return TensorView(made.base, made.view.reshape(result.get_shape()))


def _product_in_batches(
    b: LoopBuilder, left: TensorView, right: TensorView, result: TensorType[Attribute]
) -> TensorView | None:
    """The same product with a small matrix for each of the outer batches, where rows lie apart as those of heads do.

    The rows stay where they are, and cores share them as they share those of what made them. None where the rows
    are a matrix already, their channels have to move to the lanes, the outer batches are several loops, columns are
    many, or loops are.
    """
    (summed, columns), view = right.shape[-2:], left.view
    in_lanes = all((axis, 1) in view.terms[-1] for axis in view.dims[-1])
    if view.is_identity or not in_lanes or len(view.dims[0]) != 1 or columns > MOST_COLUMNS_IN_BATCHES:
        return None
    each = (left.shape[0], *[1] * (len(left.shape) - 3), summed, columns)
    if not _fits(_loops(left.view, IndexView.identity(each).expand((*left.shape[:-2], summed, columns)))):
        return None
    view = right.view
    for d in range(1, len(left.shape) - 2):
        view = view.slice(d, 0, 1)
    copies = b.shared_copy(TensorView(right.base, view), each)
    right = TensorView(copies.base, copies.view.expand((*left.shape[:-2], summed, columns)))
    return _emit(b, left, right, _loops(left.view, right.view), result)


def _flat_product(b: LoopBuilder, left: TensorView, right: TensorView, result: TensorType[Attribute]) -> TensorView:
    """The same product with all batches in one loop, on copies."""
    batch, m, k, n = prod(left.shape[:-2]), left.shape[-2], left.shape[-1], right.shape[-1]
    left = b.copy(left, (batch, m, k))
    # Without batches its loops are those of a product already.
    right = b.copy(right, (batch, k, n)) if batch > 1 else TensorView(right.base, right.view.reshape((1, k, n)))
    flat = _emit(b, left, right, _loops(left.view, right.view), TensorType(result.get_element_type(), [batch, m, n]))
    return TensorView(flat.base, flat.view.reshape(result.get_shape()))


def _emit(
    b: LoopBuilder, left: TensorView, right: TensorView, loops: NestLoops, result: TensorType[Attribute]
) -> TensorView:
    out = loops.exprs()[:-1]
    combine = "arith.addf" if loops.names[-1] else None
    op = make_nest(loops, [left.base, right.base], out, result, pointwise.mul, combine=combine)
    return whole(b.emitter.add(op).results[0])
