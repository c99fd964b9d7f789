"""Planned steps as ops of the kernel level: kernels, and host steps with transfers of their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.aten_arguments import said_arguments
from spyre_mlir.dialects.ir.control import ControlOp, with_operands
from spyre_mlir.dialects.spyre import host, kernel
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedHostOp, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.layout_planner import CONVERT_STEP, RESTICKIFY_STEP
from spyre_mlir.transforms.utils.function_constants import as_attribute
from spyre_mlir.transforms.utils.rebuild import Emitter

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
        conversion = kernel.ConvertOp(space, inputs, output, maps)
        conversion.element = step.element
        return conversion
    if step.function == GATHER_STEP:
        return GatherOp(space, inputs, output, maps, {"axis": IntegerAttr(step.axis or 0, 64)})
    op = kernel.ComputeOp(space, inputs, output, maps, {"function": StringAttr(step.function)})
    op.element = step.element
    op.integers = UnitAttr() if step.integers else None
    op.op_info = as_attribute(step.constants) if step.constants else None
    return op


def brought(
    op: Operation,
    buffers: Sequence[PlannedBuffer | None],
    values: Mapping[PlannedBuffer, SSAValue],
    hosts: Mapping[SSAValue, SSAValue],
    emitter: Emitter,
) -> list[SSAValue]:
    """Return the operands of an op as host tensors, transferring those in buffers from the device."""
    return [
        hosts.get(v, v) if b is None else emitter.add(kernel.FromDeviceOp(values[b], v.type)).results[0]
        for v, b in zip(op.operands, buffers, strict=True)
    ]


def host_op(step: PlannedHostOp, operands: Sequence[SSAValue]) -> Operation:
    """Return the host step of the kernel level, or the control flow, which is the same op at all levels."""
    op = step.origin
    if isinstance(op, ControlOp):
        return with_operands(op, operands)
    reason = None if op.reason is None else op.reason.data
    types = [r.type for r in op.results]
    return host.KernelHostOp(op.callee.data, reason, operands, said_arguments(op.given), types, is_wide=op.is_wide)
