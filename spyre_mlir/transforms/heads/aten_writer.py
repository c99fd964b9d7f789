"""Writer of aten ops in place of an op of a model."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.call_effects import keeps_order
from spyre_mlir.transforms.utils.rebuild import aten_op


class AtenWriter:
    """Writes ops before another; each says that it comes from an op of the model."""

    def __init__(self, before: AtenOp, source: AtenOp | None = None) -> None:
        """Takes the op before which all are written, and the one that they stand for if it is another."""
        self._before, self._source = before, before if source is None else source

    def call(self, overload: str, of: AtenOp | None = None, /, **given: Any) -> SSAValue:
        """Return the result of an op with these arguments, which stands for `of`.

        Raises:
            ValueError: the op table has no such op.
        """
        op = aten_op(overload, given, self._source if of is None else of)
        Rewriter.insert_op(op, InsertPoint.before(self._before))
        return op.results[0]


def erase_unread(op: Operation) -> None:
    """Erase an op without readers, and all that is then without."""
    waiting = [op]
    while waiting:
        unread = waiting.pop()
        if unread.parent is None or not isinstance(unread, AtenOp) or keeps_order(unread):
            continue
        if any(result.uses for result in unread.results):
            continue
        waiting += [v.owner for v in unread.operands if isinstance(v.owner, Operation)]
        unread.detach()
        unread.erase()


__all__ = ["AtenWriter", "erase_unread"]
