"""Lowering of blocks that the host chooses: their tensor lies as its readers want it, and kernels write it in place.

Decision: docs/decisions/0139-the-host-says-where-a-block-starts.md
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, NamedEntry, PutOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.transforms.loop_to_kernel.buffers import BlockBuffer, PlannedBuffer
from spyre_mlir.transforms.loop_to_kernel.device_forms import Block, DeviceForms
from spyre_mlir.transforms.loop_to_kernel.gather_lanes import gather_of, table_layout
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import allowed_sticks, check_said


def lower_blocks(p: LayoutPlanner, op: BlockOp | PutOp) -> None:
    """Lower a block, or what puts one back: the kernel that made it has written it there already."""
    if isinstance(op, PutOp):
        whole = p.of(op.dest)
        if not any(isinstance(b, BlockBuffer) and b.whole in whole.buffers for b in p.of(op.block).buffers):
            raise UnsupportedError("a block that no kernel writes where it is put", hint="copy it")
        p.versions[op.result] = whole
    else:
        _lower_block(p, op)


def _lower_block(p: LayoutPlanner, op: BlockOp) -> None:
    """Lower a block; one that is put back decides how its tensor lies."""
    whole, put = p.of(op.source), _put_back(op)
    if put is not None and not isinstance(op.source.owner, PutOp):
        whole = p.versions[op.source] = _written(p, op, put, whole)
    p.versions[op.result] = _block(op, op.source, op.result, whole)


def _block(op: BlockOp | PutOp, source: SSAValue, part: SSAValue, whole: DeviceForms) -> DeviceForms:
    block = Block(source, whole, op.dim.value.data, op.position, NamedEntry.of(op))
    return DeviceForms(shape_of(part), whole.format, block=block)


def _written(p: LayoutPlanner, op: BlockOp | PutOp, put: PutOp, whole: DeviceForms) -> DeviceForms:
    """The one form of a tensor that is written: what the host would send in another is the old value.

    What is behind its elements is no longer what the host has put there: the new entry brings its own.
    """
    part = shape_of(put.block)
    walked = allowed_sticks(op, [dim for dim, extent in enumerate(part) if extent > 1])
    stick = min(walked, key=lambda s: (p.later(put.result, s), -s))
    buffer = p.chosen.made[op] = p.buffer(whole, stick)
    if part[op.dim.value.data] == 1 and not buffer.ordered and not buffer.fixed:
        buffer.layout = buffer.layout.with_outermost(op.dim.value.data)  # each entry lies by itself
        if (gather := gather_of(put.result)) is not None:
            buffer.layout = table_layout(gather, buffer.layout)
    check_said(op, (None, stick), buffer.layout.order, "it is a part of a tensor of the host")
    buffer.zero_padding = False
    return DeviceForms(whole.shape, whole.format, buffers=[buffer])


def _put_back(op: BlockOp) -> PutOp | None:
    """Return what puts a block of the same tensor back in its place, made from this one."""
    puts = (use.operation for use in op.source.uses if isinstance(use.operation, PutOp))
    return next((put for put in puts if put.dest is op.source), None)


def written_block(p: LayoutPlanner, op: loop.NestOp) -> PlannedBuffer | None:
    """Return the block that a nest writes where it lies; None for any other nest."""
    put = next((use.operation for use in op.result.uses if isinstance(use.operation, PutOp)), None)
    if put is None:
        return None
    block = next((v for v in op.inputs if isinstance(v.owner, BlockOp) and v.owner.source is put.dest), None)
    if block is not None:
        return p.some(p.of(block))
    if put not in p.replaced:
        p.replaced[put] = _replaced(p, put)
    return p.some(p.replaced[put])


def _replaced(p: LayoutPlanner, put: PutOp) -> DeviceForms:
    """A block that something takes the place of that was not made of it."""
    whole = p.of(put.dest)
    if not isinstance(put.dest.owner, PutOp):
        whole = p.versions[put.dest] = _written(p, put, put, whole)
    return _block(put, put.dest, put.block, whole)


__all__ = ["lower_blocks", "written_block"]
