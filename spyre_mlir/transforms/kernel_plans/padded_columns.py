"""Products that get columns without readers: a note of how many, and weights of their own where they read parts of one.

The conversion to kernels gives such a product, its weight and its result more sticks, which the host fills with zeros.
A product of some columns of a weight has no room there. Where all that reads the weight is such products, each gets a
weight of its own, which the host takes out of the whole one at load.

Decision: docs/decisions/0250-columns-that-cores-share.md
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, TensorType, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.argument_notes import is_prepared
from spyre_mlir.dialects.aten_arguments import WIDENED
from spyre_mlir.dialects.boxes import box_of, overlap
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import PADDED, NestOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.transforms.aten_to_loop.nests import body_of
from spyre_mlir.transforms.kernel_plans.shared_weights import ProductSize
from spyre_mlir.transforms.loop_to_kernel.operators.reductions import column_of
from spyre_mlir.transforms.utils.nests.contractions import is_contraction, is_weight


def product_size(op: NestOp, column: str) -> ProductSize | None:
    """Return the extents of a product of one tensor with a weight in numbers of 16 bits or more; else None.

    Args:
        op: the product.
        column: its loop over columns.
    """
    if not is_contraction(op) or len(op.reduced) != 1:
        return None
    (depth,), extents = op.reduced, op.space.extents
    number = _weight_of(op, column)
    # A part of a weight is read, too: queries beside keys and values.
    if number is None or sorted(e.terms for e in op.input_maps[number].data) != sorted((((column, 1),), ((depth, 1),))):
        return None
    return ProductSize(prod(shape_of(op.result)) // extents[column], extents[column], extents[depth])


def has_room(op: NestOp, column: str) -> bool:
    """Return whether the host can give a product's weight more columns: it has all of them, or can get its own."""
    number, function = _weight_of(op, column), op.parent_op()
    if number is None or not isinstance(function, FuncOp) or not is_prepared(function, op.inputs[number]):
        return False
    return _reads_all(op, number) or _parts(op.inputs[number]) is not None


def pad(op: NestOp, column: str, columns: int) -> None:
    """Note the columns that a product has on the device, and give products of its weight's parts their own weights.

    Args:
        op: the product, for which there is room.
        column: its loop over columns.
        columns: how many, those without readers among them.
    """
    op.attributes[PADDED] = IntegerAttr(columns, i64)
    number = _weight_of(op, column)
    if number is not None and not _reads_all(op, number):
        for reader, place in _parts(op.inputs[number]) or ():
            _take_out(reader, place)


def _weight_of(op: NestOp, column: str) -> int | None:
    """The place of the weight among a product's inputs; None if it is none, or not the only one with columns."""
    found = [n for n, index in enumerate(op.input_maps) if column in index.names]
    return found[0] if len(found) == 1 and is_weight(op.inputs[found[0]]) else None


def _reads_all(op: NestOp, number: int) -> bool:
    shape = shape_of(op.inputs[number])
    return box_of(op, op.input_maps[number]) == tuple((0, extent - 1) for extent in shape)


def _parts(weight: SSAValue) -> list[tuple[NestOp, int]] | None:
    """The products that read parts of a weight, no column twice, and the weight's place in each; else None."""
    found = list[tuple[NestOp, int]]()
    for use in weight.uses:
        reader = use.operation
        if not isinstance(reader, NestOp) or use.index >= len(reader.inputs) or hint_of(reader) is not None:
            return None
        column = column_of(reader) if is_contraction(reader) else None
        if column is None or product_size(reader, column) is None or _weight_of(reader, column) != use.index:
            return None
        found.append((reader, use.index))
    boxes = [box_of(reader, reader.input_maps[number]) for reader, number in found]
    apart = not any(overlap(one, other) for n, one in enumerate(boxes) for other in boxes[:n])
    return found if apart else None


def _take_out(op: NestOp, number: int) -> None:
    """Let a product read a copy of the part of a weight that it reads; the host makes it."""
    weight, index = op.inputs[number], op.input_maps[number]
    box = box_of(op, index)
    shape = [last - first + 1 for first, last in box]
    space = SpaceAttr(tuple(IterDim(f"d{d}", extent) for d, extent in enumerate(shape)))
    own = [LinearExpr.of(f"d{d}") for d in range(len(shape))]
    there = IndexMapAttr(tuple(e.shifted(first) for e, (first, _) in zip(own, box, strict=True)))
    kind = element_of(weight)
    made = NestOp(
        space, [weight], [there, IndexMapAttr(tuple(own))], TensorType(kind, shape), body_of(None, [weight], kind)
    )
    made.attributes[WIDENED] = UnitAttr()
    made.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    read = IndexMapAttr(tuple(e.shifted(-first) for e, (first, _) in zip(index.data, box, strict=True)))
    op.maps = ArrayAttr([read if n == number else m for n, m in enumerate(op.maps.data)])
    op.operands[number] = made.result


__all__ = ["has_room", "pad", "product_size"]
