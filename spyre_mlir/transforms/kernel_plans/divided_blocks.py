"""Divisions of the kernels of one block: of each by itself, and of all together.

Decision: docs/decisions/0209-trips-of-loops-over-slices-make-several-steps.md
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.errors import LoweringError
from spyre_mlir.planning.copies import with_copies
from spyre_mlir.planning.divisions import divide_within
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlannedBlock, PlanRecord
from spyre_mlir.transforms.kernel_plans.wished_buffers import divide_or_refuse
from spyre_mlir.transforms.utils.kernels.launches import launch_numbers
from spyre_mlir.transforms.utils.kernels.loops import counted_along, divided
from spyre_mlir.transforms.utils.kernels.widened_weights import counted_as_read


def divide_block(block: Block, choices: KernelChoices, record: PlanRecord, totals: Collection[SSAValue] = ()) -> float:
    """Divide the kernels of a block together, as far as that is predicted to be quicker than one by one.

    Returns:
        Their predicted time.
    """
    ops = kernels_in(block)
    kernels, buffers = choices.sequence(ops, launch_numbers(block), totals)
    best = with_copies(kernels, divide_or_refuse(ops, kernels, choices.prices), choices.prices)
    usual = divide_within([replace(k, candidates=k.candidates[:1]) for k in kernels], best.us, choices.prices)
    gains = usual is None or best.us < usual.us
    plan = best if gains or usual is None else usual
    record.blocks.append(PlannedBlock(choices, ops, kernels, plan))
    if not gains:
        return plan.us
    for op, found, number in zip(ops, kernels, best.chosen, strict=True):
        op.space = divided(op.space, found.candidates[number].splits)
    for number in best.local:
        if isinstance(buffers[number].owner, kernel.AllocOp):
            move_to(buffers[number], "lx")
    return plan.us


def divide_trips(loop: scf.ForOp, choices: KernelChoices, record: PlanRecord) -> float:
    """Divide the kernels of a trip together; return the predicted time of all trips.

    Args:
        loop: that the program has already; its kernels have a division each.
        choices: of its kernels.
        record: of what is divided.
    """
    trip_us = divide_block(loop.body.block, choices, record) + choices.parameters.trip_fixed_us
    return loop_bounds(loop).trips * trip_us


def divide_as_usual(block: Block, choices: KernelChoices) -> bool:
    """Divide kernels that have no division yet one by one; return whether all could be, and have a file."""
    ops = kernels_in(block)
    given = {op for op in ops if any(d.split > 1 for d in op.space.data)}
    choices.fixed |= given
    try:
        for op in ops:
            if op not in given:
                if op.is_product:
                    op.space = counted_along(op)
                elif choices.is_widened(op.output):
                    op.space = counted_as_read(op, choices.widened)
                choices.divide(op)
            choices.candidates(op)
    except LoweringError:
        return False
    return True


def kernels_in(block: Block) -> list[kernel.KernelOp]:
    """Return the kernels of a block itself, in order."""
    return [op for op in block.ops if isinstance(op, kernel.KernelOp)]


def move_to(buffer: SSAValue, space: Literal["hbm", "lx"]) -> None:
    """Put a buffer into device memory or the scratchpads."""
    made = DeviceTensorType(replace(kernel.device_tensor(buffer), space=space))
    Rewriter.replace_value_with_new_type(buffer, made)


__all__ = ["divide_as_usual", "divide_block", "divide_trips", "kernels_in", "move_to"]
