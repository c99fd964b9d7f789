"""Nests that write a part of a tensor which nothing reads, such as what a slice leaves out of a concatenation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from spyre_mlir.dialects.boxes import Box, box_of, overlap
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.loop import EmptyOp, NestOp
from spyre_mlir.dialects.tensors import element_of, shape_of


def drop_unread_parts(function: func.FuncOp, among: Collection[Operation] | None = None) -> None:
    """Erase nests into a tensor whose part is not read, and what only they read; readers get the tensor before.

    A tensor that only nests fill shrinks to what is left of it, and keeps an unread part in between: kernels may go
    through whole tensors, and every place has to be written by then.

    Args:
        function: at the loop level.
        among: the nests that may go; all of them if it is None.
    """
    seen, freed = set[Operation](), set[Operation]()
    for op in reversed(list(function.body.block.ops)):
        if op in freed and is_trivially_dead(op):
            freed |= _makers(op.operands)
            Rewriter.erase_op(op)
        elif isinstance(op, NestOp) and op.dest is not None and op not in seen:
            writers = _writers(op)
            seen.update(writers)
            for unread in _dropped(writers, among):
                freed |= _makers(unread.inputs)
                Rewriter.erase_op(unread)


def _makers(values: Iterable[SSAValue]) -> set[Operation]:
    return {value.owner for value in values if isinstance(value.owner, Operation)}


def _writers(nest: NestOp) -> list[NestOp]:
    """The nests of a block that write into the tensor of one of them, each behind the one whose result it takes."""
    root: SSAValue = nest.result
    while isinstance(root.owner, NestOp) and root.owner.dest is not None:
        root = root.owner.dest
    found, values = list[NestOp](), [root]
    for value in values:
        into = [u.operation for u in value.uses if isinstance(u.operation, NestOp) and _is_destination(u)]
        found += (op for op in into if op.parent is nest.parent)
        values += (op.result for op in into if op.parent is nest.parent)
    return found


def _is_destination(use: Use) -> bool:
    return isinstance(use.operation, NestOp) and use.index == len(use.operation.inputs)


def _dropped(writers: Sequence[NestOp], among: Collection[Operation] | None) -> list[NestOp]:
    """Take the nests out of a tensor whose parts nothing reads, and return them, the last one first."""
    read, unread = dict[SSAValue, list[Box]](), list[NestOp]()
    for nest in reversed(writers):
        read[nest.result] = boxes = _read(nest.result, read)
        if (among is None or nest in among) and not any(overlap(_written(nest), box) for box in boxes):
            unread.append(nest)
    root = writers[0].dest
    assert root is not None
    left = [nest for nest in writers if nest not in unread]
    boxes = [*_read(root, read), *(box for found in read.values() for box in found)]
    if not unread or not boxes or not isinstance(root.owner, EmptyOp):
        return _taken_out(unread)
    while holes := _holes(unread, left, _hull([*boxes, *map(_written, left)])):
        left += holes
        unread = [nest for nest in unread if nest not in holes]
    _taken_out(unread)
    if left and unread:
        _shrink(root, left, _hull([*boxes, *map(_written, left)]))
    return unread


def _taken_out(nests: list[NestOp]) -> list[NestOp]:
    for nest in nests:
        assert nest.dest is not None
        nest.result.replace_all_uses_with(nest.dest)
    return nests


def _hull(boxes: Sequence[Box]) -> Box:
    """The smallest box around others, of which there is one at least."""
    return tuple(
        (min(first), max(last)) for first, last in (zip(*ends, strict=True) for ends in zip(*boxes, strict=True))
    )


def _holes(unread: Sequence[NestOp], left: Sequence[NestOp], hull: Box) -> list[NestOp]:
    """The nests without which a place of a box might be written by none."""
    return [
        nest
        for nest in unread
        if overlap(_written(nest), hull) and not any(_covers(other, _written(nest), hull) for other in left)
    ]


def _covers(nest: NestOp, box: Box, hull: Box) -> bool:
    """Return whether a nest writes every place of a box that lies in another one."""
    written = _written(nest)
    points = prod(nest.space.extents[name] for name in nest.output_map.names)
    if points != prod(last - first + 1 for first, last in written):
        return False  # it leaves places out
    return all(a <= max(c, e) and min(d, f) <= b for (a, b), (c, d), (e, f) in zip(written, box, hull, strict=True))


def _shrink(root: SSAValue, writers: Sequence[NestOp], hull: Box) -> None:
    """Let a tensor hold no more than a box of it, for all that write and read it."""
    values = [root, *(nest.result for nest in writers)]
    shape = [last - first + 1 for first, last in hull]
    if shape == list(shape_of(root)):
        return
    for use in [use for value in values for use in value.uses if not _is_destination(use)]:
        assert isinstance(use.operation, NestOp)  # whatever else reads a tensor reads all of it
        _shift(use.operation, use.index, hull)
    for nest in writers:
        _shift(nest, len(nest.maps.data) - 1, hull)
    for value in values:
        Rewriter.replace_value_with_new_type(value, TensorType(element_of(root), shape))


def _shift(nest: NestOp, number: int, hull: Box) -> None:
    """Let a map of a nest count from the corner of a box."""
    maps = list(nest.maps.data)
    maps[number] = IndexMapAttr(
        tuple(expr.shifted(-first) for expr, (first, _) in zip(maps[number].data, hull, strict=True))
    )
    nest.maps = ArrayAttr(maps)


def _read(value: SSAValue, known: dict[SSAValue, list[Box]]) -> list[Box]:
    """Return the parts of a tensor that its users read; all of it if one of them is no nest."""
    whole = tuple((0, extent - 1) for extent in shape_of(value))
    boxes: list[Box] = []
    for use in value.uses:
        boxes += _read_by(use, known, whole)
    return [whole] if whole in boxes else boxes


def _read_by(use: Use, known: dict[SSAValue, list[Box]], whole: Box) -> list[Box]:
    op = use.operation
    if not isinstance(op, NestOp):
        return [whole]
    if not _is_destination(use):
        return [box_of(op, op.input_maps[use.index])]
    return known.get(op.result, [whole])


def _written(nest: NestOp) -> Box:
    return box_of(nest, nest.output_map)


__all__ = ["drop_unread_parts"]
