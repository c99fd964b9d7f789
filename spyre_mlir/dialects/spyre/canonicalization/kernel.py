"""Canonicalisation of the kernel level: unused buffers, kernels whose result no op reads, transfers there and back.

Buffers are memory, not values: a pattern looks at every use of the buffers that it concerns. Buffers with a place in
the pool or a scratchpad keep their lives, because others may have the same bytes before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from spyre_mlir.dialects.ir.canonicalization import Patterns
from spyre_mlir.dialects.spyre.kernel import (
    AllocOp,
    ConvertOp,
    FreeOp,
    FromDeviceOp,
    KernelConstantOp,
    KernelOp,
    RestickifyOp,
    ToDeviceOp,
    device_tensor,
)
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, is_written, uses_with_tiles
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.hw.formats import DL16, FP32


def _users(buffer: SSAValue) -> list[Operation]:
    return [use.operation for use in buffer.uses]


@dataclass
class DropUnusedBuffer(RewritePattern):
    """Erases a buffer, a constant or a transfer to the device that nothing uses, with the `free` of it."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllocOp | KernelConstantOp | ToDeviceOp, rewriter: PatternRewriter, /) -> None:
        """Erase one buffer."""
        users = _users(op.result)
        if all(isinstance(user, FreeOp) for user in users):
            for user in users:
                rewriter.erase(user)
            rewriter.erase(op)


@dataclass
class DropDeadStore(RewritePattern):
    """Erases a kernel that writes a buffer which no op reads."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: KernelOp, rewriter: PatternRewriter, /) -> None:
        """Erase one kernel."""
        if isinstance(op.output.owner, AllocOp) and all(
            is_written(use) or isinstance(use.operation, FreeOp) for use in op.output.uses
        ):
            rewriter.erase(op)


@dataclass
class SkipRoundTrip(RewritePattern):
    """Lets the readers of a copy read the original, if two kernels re-lay or convert it there and back.

    A tensor in DLFloat16 survives the way to float32 and back; one in float32 does not survive DLFloat16.
    """

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: RestickifyOp | ConvertOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite the readers of one kernel's result, and erase the kernel."""
        there = _only_writer(op.inputs[0])
        if there is None or type(there) is not type(op) or not _is_kept(there, op):
            return
        source, between, copy = there.inputs[0], op.inputs[0], op.output
        if _only_writer(copy) is not op or not _in_one_block([there, op], [source, between, copy]):
            return
        if any(not writer.is_before_in_block(there) for writer in _writers(source)):
            return
        rewriter.replace_uses_with_if(copy, source, lambda use: use.operation is not op)
        rewriter.erase(op)


def _is_kept(there: KernelOp, back: KernelOp) -> bool:
    """Return whether two kernels bring every element back to its place, in the form it had."""
    if any(op.rounds_to is not None for op in (there, back)):
        return False
    start, between, end = there.tensors[0], there.tensors[-1], back.tensors[-1]
    if start != end or any(op.maps.data[0] != op.maps.data[-1] for op in (there, back)):
        return False
    return start.format == between.format or (start.format, between.format) == (DL16.name, FP32.name)


def _writers(buffer: SSAValue) -> list[Operation]:
    return [use.operation for use in uses_with_tiles(buffer) if is_written(use)]


def _only_writer(buffer: SSAValue) -> KernelOp | None:
    """Return the kernel that fills a buffer without a place, if there is one alone."""
    if not isinstance(buffer.owner, AllocOp) or buffer.owner.offset is not None:
        return None
    match _writers(buffer):
        case [KernelOp() as writer]:
            return writer
        case _:
            return None


def _in_one_block(kernels: Sequence[Operation], buffers: Sequence[SSAValue]) -> bool:
    """Return whether all uses of buffers are kernels and transfers to the host in the block of some kernels."""
    users = [*kernels, *(user for buffer in buffers for user in _users(buffer))]
    known = all(isinstance(user, KernelOp | FromDeviceOp) for user in users)
    placed = any(isinstance(b.owner, AllocOp) and b.owner.offset is not None for b in buffers)
    return known and not placed and len({user.parent_block() for user in users}) == 1


@dataclass
class SkipDevice(RewritePattern):
    """Replaces what comes back from the device by the host tensor that was sent, if both are float32.

    In DLFloat16 the way rounds, and integers may saturate: such a tensor is another one.
    """

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: FromDeviceOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one transfer."""
        sent = op.source.owner
        if not isinstance(sent, ToDeviceOp) or sent.source.type != op.result.type or element_of(op.result) != f32:
            return
        known = all(isinstance(user, KernelOp | FromDeviceOp | TileOp) for user in _users(op.source))
        if known and device_tensor(op.source).format == FP32.name and not _writers(op.source):
            rewriter.replace(op, (), [sent.source])


@dataclass
class DropWholeTile(RewritePattern):
    """Replaces a tile of the whole tensor, which is where the tensor is in every trip, by the tensor."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TileOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one tile."""
        if op.source.type == op.result.type:
            rewriter.replace(op, (), [op.source])


PATTERNS: Patterns = {
    AllocOp: (DropUnusedBuffer(),),
    KernelConstantOp: (DropUnusedBuffer(),),
    ToDeviceOp: (DropUnusedBuffer(),),
    KernelOp: (DropDeadStore(),),
    RestickifyOp: (SkipRoundTrip(),),
    ConvertOp: (SkipRoundTrip(),),
    FromDeviceOp: (SkipDevice(),),
    TileOp: (DropWholeTile(),),
}
