"""Rebuilding function bodies in one pass: the linear way to convert between levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.errors import SpyreError, UnsupportedError
from spyre_mlir.hw.sticks import StickError


def functions(module: ModuleOp) -> list[func.FuncOp]:
    """The functions of a module that have a body."""
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and op.body.blocks]


class Emitter:
    """Collects the new ops of a block; each takes the location of the op it replaces."""

    def __init__(self) -> None:
        """Starts with an empty block."""
        self.ops: list[Operation] = []
        self.current: Operation | None = None

    def add(self, op: Operation) -> Operation:
        """Appends an op and gives it the current location unless it has one."""
        if self.current is not None:
            op.location = self.current.location
            if (number := self.current.attributes.get(ORIGIN)) is not None:
                op.attributes.setdefault(ORIGIN, number)
        self.ops.append(op)
        return op


def rebuild(function: func.FuncOp, convert: Callable[[Operation], Sequence[SSAValue]], emitter: Emitter) -> None:
    """Replaces the body of a function: `convert` turns each op into new ops and returns its new results.

    `convert` looks operands up in a map of its own; block arguments stay the same values. On an error the
    function is left as it was, and the error says at which op.
    """
    block = function.body.block
    for op in list(block.ops):
        emitter.current = op
        try:
            convert(op)
        except SpyreError as error:
            tell_origin(error, op)
            raise
        except StickError as error:
            refused = UnsupportedError(str(error))
            tell_origin(refused, op)
            raise refused from error
    _install(block, emitter.ops)


def _install(block: Block, ops: Sequence[Operation]) -> None:
    for op in reversed(list(block.ops)):
        op.detach()
        op.erase(safe_erase=False)
    block.add_ops(ops)


def tell_origin(error: SpyreError, op: Operation) -> None:
    """Says in an error at which op it was raised, and which aten op that comes from, unless it says so already."""
    error.where = error.where or f"{op.name} at {describe_location(op)}"
    number = op.attributes.get(ORIGIN)
    if error.origin is None and isinstance(number, IntegerAttr):
        error.origin = number.value.data


def describe_location(op: Operation) -> str:
    """Where in the model an op comes from, for messages."""
    text = str(op.location)
    return "unknown location" if text == "loc(unknown)" else text.removeprefix("loc(").removesuffix(")")
