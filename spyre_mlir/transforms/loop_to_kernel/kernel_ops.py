"""Planned steps as ops of the kernel level."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.layout_planner import CONVERT_STEP, RESTICKIFY_STEP
from spyre_mlir.transforms.utils.function_constants import as_attribute

GATHER_STEP = "gather"


def kernel_op(step: PlannedKernel, values: Mapping[PlannedBuffer, SSAValue]) -> kernel.KernelOp:
    """Return the op of a step.

    Args:
        step: what to run.
        values: the device tensors that its buffers became.
    """
    inputs = [values[b] for b, _ in step.inputs]
    maps = [IndexMapAttr(m) for _, m in (*step.inputs, step.output)]
    space, output = SpaceAttr(tuple(IterDim(d.name, d.extent) for d in step.space)), values[step.output[0]]
    if step.function == RESTICKIFY_STEP:
        return kernel.RestickifyOp(space, inputs, output, maps)
    if step.function == CONVERT_STEP:
        return kernel.ConvertOp(space, inputs, output, maps)
    if step.function == GATHER_STEP:
        return kernel.GatherOp(space, inputs, output, maps, {"axis": IntegerAttr(step.axis or 0, 64)})
    op = kernel.ComputeOp(space, inputs, output, maps, {"function": StringAttr(step.function)})
    op.element = step.element
    op.integers = UnitAttr() if step.integers else None
    op.op_info = as_attribute(step.constants) if step.constants else None
    return op
