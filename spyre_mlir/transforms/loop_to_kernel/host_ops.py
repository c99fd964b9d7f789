"""Host steps of the kernel level, with transfers of their operands from the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.aten_arguments import said_arguments
from spyre_mlir.dialects.ir.control import ControlOp, with_operands
from spyre_mlir.dialects.spyre import host, kernel
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedHostOp
from spyre_mlir.transforms.utils.rebuild import Emitter


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
