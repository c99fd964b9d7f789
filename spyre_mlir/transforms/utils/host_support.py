"""Support of aten-level ops by the host, with the reason, and the host steps made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import spell_arguments
from spyre_mlir.dialects.spyre.host import LoopHostOp
from spyre_mlir.ops.table import Family


def mark(op: AtenOp, reason: str | None) -> None:
    """Mark an op as run by the host; without a reason, it follows other host steps."""
    op.host, op.reason = UnitAttr(), None if reason is None else StringAttr(reason)


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
    callee = op.overload if "::" in op.overload else f"aten.{op.overload}"
    said, types = None if op.reason is None else op.reason.data, [r.type for r in op.results]
    return LoopHostOp(callee, said, [mapped[v] for v in inputs], attributes, types, is_wide=op.is_wide)


def stay_on_host(block: Block) -> None:
    """Duplicate for the host the ops that only move elements that it already has.

    A view of an argument that a host step reads need not go to the device and come back.

    Args:
        block: of a function; ops that the host runs are marked.
    """
    stays = _Stays()
    for op in list(block.ops):
        if not is_marked(op):
            continue
        for number, value in enumerate(op.operands):
            copy = stays.on_host(value)
            if copy is not None and copy is not value:
                op.operands[number] = copy
        for copy in stays.taken():
            block.insert_op_before(copy, op)


class _Stays:
    """Copies of ops that the host can run on what it has."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, SSAValue | None] = {}
        self._made: list[Operation] = []

    def taken(self) -> list[Operation]:
        """The copies made since the last time."""
        made, self._made = self._made, []
        return made

    def on_host(self, value: SSAValue) -> SSAValue | None:
        """The value on the host, None if the device computes it."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: SSAValue) -> SSAValue | None:
        if isinstance(value, BlockArgument) or is_marked(cast(Operation, value.owner)):
            return value
        op = value.owner
        if not isinstance(op, AtenOp) or op.entry is None or not _moves(op):
            return None
        operands = [self.on_host(v) for v in op.operands]
        if any(v is None for v in operands):
            return None
        copy = op.clone(value_mapper=dict(zip(op.operands, cast("list[SSAValue]", operands), strict=True)))
        mark(copy, None)
        copy.location = op.location
        self._made.append(copy)
        return next(new for old, new in zip(op.results, copy.results, strict=True) if old is value)


def _moves(op: AtenOp) -> bool:
    """Return whether an op computes nothing: it moves elements, converts them, or makes known numbers."""
    entry = op.entry
    return entry is not None and entry.decompose is None and entry.family in (Family.VIEW, Family.CREATION)


__all__ = ["is_marked", "loop_step", "mark", "stay_on_host"]
