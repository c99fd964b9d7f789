"""Pass `schedule-host-steps`: orders a program with host steps for the smallest number of launches.

Host steps that can run do so first; then every op for the device that waits for none; then the host steps that these
allow, and so on. Each turn of the device is one launch, and no order has fewer. Inside a turn the order stays, and
steps that draw random numbers, or exchange tensors with other ranks, keep theirs altogether.

Decision: docs/decisions/0053-a-launch-is-a-bundle.md
Decision: docs/decisions/0136-random-numbers-are-eagers.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from spyre_mlir.dialects.ir.call_effects import keeps_order
from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.spyre.host import LoopHostOp
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.utils.function_pass import FunctionPass


@dataclass(frozen=True)
class ScheduleHostStepsPass(FunctionPass):
    """Groups host steps between as few launches as possible."""

    name = "schedule-host-steps"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Order the ops of a function that has a host step."""
        block = function.body.block
        if any(isinstance(o, LoopHostOp | ControlOp) for o in block.ops):
            _reorder(block, _ordered([o for o in block.ops if not o.has_trait(IsTerminator)]))


def _ordered(ops: list[Operation]) -> list[Operation]:
    waiting, done = ops, list[Operation]()
    host = True
    while waiting:
        left: list[Operation] = []
        pending = set(waiting)
        ordered = False  # whether an earlier step that keeps its order waits
        for op in waiting:
            ready = all(not isinstance(v.owner, Operation) or v.owner not in pending for v in op.operands)
            ready = ready and not (ordered and _keeps_order(op))
            ordered = ordered or (_keeps_order(op) and not (ready and host))
            if ready and isinstance(op, LoopHostOp | ControlOp) is host:
                pending.discard(op)
                done.append(op)
            else:
                left.append(op)
        waiting, host = left, not host
    return done


def _keeps_order(op: Operation) -> bool:
    return isinstance(op, ControlOp) or (isinstance(op, LoopHostOp) and keeps_order(op))


def _reorder(block: Block, order: list[Operation]) -> None:
    last = block.last_op
    for op in order:
        op.detach()
    if last is None:
        block.add_ops(order)
    else:
        block.insert_ops_before(order, last)
