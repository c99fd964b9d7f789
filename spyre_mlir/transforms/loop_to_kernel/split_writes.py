"""Nests that cannot write their destination as it lies: into a tensor of their own, which is copied there."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Region

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, SpaceAttr
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.hw.formats import DL16, FP32
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer
from spyre_mlir.transforms.loop_to_kernel.choose_lane import lane_of_result


def names_in(op: loop.NestOp, operand: int) -> list[str]:
    """Return the loops of a nest that walk an input, in the order of the nest."""
    used = op.input_maps[operand].names
    return [d.name for d in op.space.data if d.name in used]


def is_product(op: loop.NestOp) -> bool:
    """Return whether a nest sums what a function of its inputs gives."""
    return op.combine is not None and body_function(op.body.block) is not None


def column_of(op: loop.NestOp) -> str | None:
    """Return the loop that a product has in the lanes of its result; None if it has a single column."""
    columns = [n for n in names_in(op, 1) if n not in names_in(op, 0)]
    if len(columns) > 1:
        columns = [n for n in names_in(op, 0) if n not in names_in(op, 1)]
    return columns[0] if columns else None


def can_write(op: loop.NestOp, dest: PlannedBuffer) -> bool:
    """Return whether the function of a nest writes the format of a buffer, with its loops in the lanes there."""
    entry = body_function(op.body.block)
    if is_product(op):
        return dest.format == DL16.name and lane_of_result(op, dest.layout.stick, dest.block) == column_of(op)
    return op.combine is not None or entry is None or dest.format != FP32.name or entry.fp32


def split_write(op: loop.NestOp) -> tuple[loop.NestOp, loop.NestOp]:
    """Put in front of a nest with a destination the same nest without one, and a copy to the destination."""
    kept = [d for d in op.space.data if d.name in op.output_map.names]
    own, element = IndexMapAttr(tuple(LinearExpr.of(d.name) for d in kept)), element_of(op.result)
    shape = TensorType(element, [d.extent for d in kept])
    combine = None if op.combine is None else op.combine.data
    made = loop.NestOp(op.space, op.inputs, [*op.input_maps, own], shape, op.body.clone(), combine=combine)
    body = Block(arg_types=[element])
    body.add_op(loop.YieldOp(operands=[[body.args[0]]]))
    maps = [own, op.output_map]
    copy = loop.NestOp(SpaceAttr(tuple(kept)), [made.result], maps, op.result.type, Region(body), dest=op.dest)
    for part in (made, copy):
        part.attributes |= op.attributes
        part.wide, part.location = op.wide, op.location
    if (block := op.parent_block()) is None:
        raise ValueError("a nest outside of a block")
    block.insert_ops_before([made, copy], op)
    return made, copy


__all__ = ["can_write", "column_of", "is_product", "names_in", "split_write"]
