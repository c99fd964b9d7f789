"""Support of aten-level ops by the host, with the reason, and the host steps made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from typing_extensions import override
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import spell_arguments
from spyre_mlir.dialects.spyre.host import SAYS_WHERE, LoopHostOp
from spyre_mlir.ops.table import Family


def mark(op: AtenOp, reason: str | None) -> None:
    """Mark an op as run by the host; without a reason, it follows other host steps."""
    op.host, op.reason = UnitAttr(), None if reason is None else StringAttr(reason)


def says_where(op: object) -> bool:
    """Return whether an op is a step of the host that reads where a launch finds its matrices."""
    return isinstance(op, AtenOp) and op.on_host and op.reason is not None and op.reason.data == SAYS_WHERE


def is_marked(op: Operation) -> bool:
    """Return whether an op is marked to run on the host."""
    return isinstance(op, AtenOp) and op.on_host


def loop_step(op: AtenOp, operands: Sequence[SSAValue]) -> LoopHostOp:
    """Return the host step of a marked op.

    Args:
        op: the op.
        operands: its operands at the loop level.
    """
    arguments = op.arguments()
    mapped = dict(zip(op.operands, operands, strict=True))
    inputs, attributes = spell_arguments(arguments, SSAValue)
    said, types = None if op.reason is None else op.reason.data, [r.type for r in op.results]
    return LoopHostOp(op.operation, said, [mapped[v] for v in inputs], attributes, types, is_wide=op.is_wide)


@dataclass
class ReadOnHost(RewritePattern):
    """Makes a step of the host read a copy, run by the host, of an op that only moves elements that the host has.

    A view of an argument that the host reads need not go to the device and come back.

    Attributes:
        known: values by what stands for them on the host, None if the device computes them.
    """

    known: dict[SSAValue, SSAValue | None] = field(default_factory=dict[SSAValue, "SSAValue | None"])

    @override
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Rewrite the operands of one marked op; the copies stand before the first op that reads them."""
        if not is_marked(op):
            return
        for number, value in enumerate(op.operands):
            copy = self._on_host(value, rewriter)
            if copy is not None and copy is not value:
                op.operands[number] = copy
                rewriter.notify_op_modified(op)

    def _on_host(self, value: SSAValue, rewriter: PatternRewriter) -> SSAValue | None:
        """The value on the host, None if the device computes it."""
        if value not in self.known:
            self.known[value] = self._found(value, rewriter)
        return self.known[value]

    def _found(self, value: SSAValue, rewriter: PatternRewriter) -> SSAValue | None:
        if isinstance(value, BlockArgument) or is_marked(cast(Operation, value.owner)):
            return value
        op = value.owner
        if not isinstance(op, AtenOp) or op.entry is None or not _moves(op):
            return None
        operands = [self._on_host(v, rewriter) for v in op.operands]
        if any(v is None for v in operands):
            return None
        copy = op.clone(value_mapper=dict(zip(op.operands, cast("list[SSAValue]", operands), strict=True)))
        mark(copy, None)
        copy.location = op.location
        rewriter.insert(copy)
        return next(new for old, new in zip(op.results, copy.results, strict=True) if old is value)


def _moves(op: AtenOp) -> bool:
    """Return whether an op computes nothing: it moves elements, converts them, or makes known numbers."""
    entry = op.entry
    return entry is not None and entry.decompose is None and entry.family in (Family.VIEW, Family.CREATION)


__all__ = ["ReadOnHost", "is_marked", "loop_step", "mark", "says_where"]
