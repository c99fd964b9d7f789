"""Layouts of arguments that a program writes: the same before and after a call, so that they can stay on the card.

Decision: docs/decisions/0123-tensors-stay-on-the-card.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import func
from xdsl.ir import BlockArgument

from spyre_mlir.dialects.argument_notes import new_values
from spyre_mlir.transforms.loop_to_kernel.buffers import Define, PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RESTICKIFY_STEP, LayoutPlanner

Pairs = set[tuple[int, int]]


def written_arguments(call: func.CallOp) -> Pairs:
    """Return which results of a region's function are the new values of which of its arguments."""
    function = call.parent_op()
    returned = function.get_return_op() if isinstance(function, func.FuncOp) else None
    if not isinstance(function, func.FuncOp) or returned is None:
        return set()
    pairs: Pairs = set()
    for argument, number in new_values(function).items():
        new, old = returned.operands[number], function.body.block.args[argument]
        operands = [n for n, value in enumerate(call.arguments) if value is old]
        pairs |= {(operand, n) for n, result in enumerate(call.results) if result is new for operand in operands}
    return pairs


def align(p: LayoutPlanner, pairs: Iterable[tuple[int, int]], results: Sequence[PlannedBuffer | None]) -> None:
    """Let arguments lie as their new values, if these only reserve more, or the other way round.

    Args:
        p: a settled plan.
        pairs: numbers of arguments and of the results that are their new values.
        results: the buffers of the results; None for a host tensor.
    """
    relaid = {b for s in p.items if isinstance(s, PlannedKernel) and s.function == RESTICKIFY_STEP for b in _buffers(s)}
    for argument, number in pairs:
        new = results[number]
        for old in [item.buffer for item in p.items if isinstance(item, Define) and _holds(item.buffer, argument)]:
            if new is None or old.format != new.format or old.layout == new.layout:
                continue
            if old in relaid or not old.fix(new.layout):
                _ = new not in relaid and new.fix(old.layout)


def _buffers(step: PlannedKernel) -> tuple[PlannedBuffer, PlannedBuffer]:
    return step.inputs[0][0], step.output[0]


def _holds(buffer: PlannedBuffer, argument: int) -> bool:
    source = buffer.host or buffer.argument
    return isinstance(source, BlockArgument) and source.index == argument


__all__ = ["Pairs", "align", "written_arguments"]
