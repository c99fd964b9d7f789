"""Entries of a tensor replaced: in their block, which is put back, or in all of the tensor.

Decision: docs/decisions/0218-entries-are-stored-in-place.md
Decision: docs/decisions/0253-prompts-fill-whole-pages.md
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import FloatAttr, TensorType, f32, f64, i1
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import PLACED
from spyre_mlir.dialects.spyre.loop import LoopConstantOp
from spyre_mlir.dialects.spyre.loop_blocks import BLOCK, BlockOp, NamedEntry, PutOp
from spyre_mlir.dialects.spyre.named_values import IotaAttr
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.ops.native import pointwise
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.transforms.aten_to_loop.loop_builder import LoopBuilder
from spyre_mlir.transforms.aten_to_loop.nests import TensorView, whole

COUNTING = IotaAttr(FloatAttr(0.0, f64), FloatAttr(1.0, f64))


def lower_put_entry(b: LoopBuilder, op: AtenOp, _entry: OpEntry) -> TensorView:
    """Select the new entry where the number of a place is the one that is named."""
    args = op.arguments()
    names = ("self", "entry", "positions", "place")
    old, new, positions, place = (b.readings[cast(SSAValue, args[n])] for n in names)
    dim, number, per = (cast(int, args[n]) for n in ("dim", "number", "per"))
    places = whole(b.emitter.add(LoopConstantOp(COUNTING, TensorType(f32, [old.shape[dim] * per]))).results[0])
    if PLACED not in op.attributes:
        return _replaced(b, old, new, places, place, dim)
    named = NamedEntry(from_end=True, number=number, per=per)
    size = BLOCK if per == 1 else 1
    block = whole(b.emitter.add(BlockOp(old.base, dim, positions.base, size, named)).results[0])
    counted = NamedEntry(from_end=True, number=number)
    here = whole(b.emitter.add(BlockOp(places.base, 0, positions.base, size * per, counted)).results[0])
    made = _replaced(b, block, new, here, place, dim)
    return whole(b.emitter.add(PutOp(made.base, old.base, dim, positions.base, named)).results[0])


def lower_put_page(b: LoopBuilder, op: AtenOp, _entry: OpEntry) -> TensorView:
    """Write an entry in the place of another one, or select the places that are replaced."""
    args = op.arguments()
    old, new, positions = (b.readings[cast(SSAValue, args[n])] for n in ("self", "entry", "positions"))
    dim, number, count = (cast(int, args[n]) for n in ("dim", "number", "count"))
    per = old.shape[dim + 1]
    named = NamedEntry(from_end=True, number=number, per=per, run=count)
    if any(len(axes) > 1 for axes in new.view.dims):
        new = b.copy(new)  # the entry lies as its tensor does, whose lanes may be no loop of the nest
    if count == per:
        made = b.copy(new)
    else:
        block = whole(b.emitter.add(BlockOp(old.base, dim, positions.base, 1, named)).results[0])
        made = b.pointwise(pointwise.where, [_first(b, count, dim, old.shape), new, block], _type_of(block))
    return whole(b.emitter.add(PutOp(made.base, old.base, dim, positions.base, named)).results[0])


def _first(b: LoopBuilder, count: int, dim: int, shape: tuple[int, ...]) -> TensorView:
    """Truth values of the places of an entry, true for the first ones."""
    per = shape[dim + 1]
    places = whole(b.emitter.add(LoopConstantOp(COUNTING, TensorType(f32, [per]))).results[0])
    first = b.pointwise(pointwise.lt, [places, b.reading(count, f32)], TensorType(i1, [per]))
    return TensorView(first.base, first.view.reshape((1,) * (dim + 1) + (per,) + (1,) * (len(shape) - dim - 2)))


def _replaced(
    b: LoopBuilder, old: TensorView, new: TensorView, places: TensorView, place: TensorView, dim: int
) -> TensorView:
    """A tensor, or a block of one, with the entry whose place is named."""
    count, rank = places.shape[0], len(old.shape)
    hits = b.pointwise(pointwise.eq, [places, place], TensorType(i1, [count]))
    counted = (1,) * dim + ((count,) if old.shape[dim] == count else (old.shape[dim], count // old.shape[dim]))
    mask = TensorView(hits.base, hits.view.reshape(counted + (1,) * (rank - len(counted))))
    return b.pointwise(pointwise.where, [mask, new, old], _type_of(old))


def _type_of(view: TensorView) -> TensorType[Attribute]:
    return TensorType[Attribute](element_of(view.base), view.shape)


__all__ = ["lower_put_entry", "lower_put_page"]
