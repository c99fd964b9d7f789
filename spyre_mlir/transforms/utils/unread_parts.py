"""Nests that write a part of a tensor which nothing reads, such as what a slice leaves out of a concatenation."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue, Use
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.tensors import shape_of

Box = tuple[tuple[int, int], ...]  # per dimension the first and the last index


def drop_unread_parts(function: func.FuncOp, among: Collection[Operation] | None = None) -> None:
    """Erase nests into a tensor whose part is not read, and what only they read; readers get the tensor before.

    Args:
        function: at the loop level.
        among: the nests that may go; all of them if it is None.
    """
    read, freed = dict[SSAValue, list[Box]](), set[Operation]()
    for op in reversed(list(function.body.block.ops)):
        if op in freed and is_trivially_dead(op):
            freed |= _makers(op.operands)
            op.detach()
            op.erase()
        elif isinstance(op, NestOp) and op.dest is not None:
            read[op.result] = boxes = _read(op.result, read)
            written = box_of(op, op.output_map)
            if (among is None or op in among) and not any(overlap(written, box) for box in boxes):
                op.result.replace_all_uses_with(op.dest)
                freed |= _makers(op.inputs)
                op.detach()
                op.erase()


def _makers(values: Iterable[SSAValue]) -> set[Operation]:
    return {value.owner for value in values if isinstance(value.owner, Operation)}


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
    if use.index < len(op.inputs):
        return [box_of(op, op.input_maps[use.index])]
    return known.get(op.result, [whole])


def box_of(op: NestOp, index: IndexMapAttr) -> Box:
    """Return the part of a tensor that a nest walks through a map."""
    extents = op.space.extents
    return tuple((expr.first(extents), expr.last(extents)) for expr in index.data)


def overlap(one: Box, other: Box) -> bool:
    """Return whether two parts of a tensor have a place in common."""
    return all(a <= d and c <= b for (a, b), (c, d) in zip(one, other, strict=True))


__all__ = ["box_of", "drop_unread_parts", "overlap"]
