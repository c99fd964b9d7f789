"""Layouts of arguments that a program writes: the same before and after a call, so that they can stay on the card.

Decision: docs/decisions/0123-tensors-stay-on-the-card.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import BlockArgument

from spyre_mlir.transforms.loop_to_kernel.buffers import Define, PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RESTICKIFY_STEP, LayoutPlanner


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


__all__ = ["align"]
