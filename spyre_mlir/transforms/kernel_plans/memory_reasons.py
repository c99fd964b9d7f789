"""Why an operand of a kernel is in device memory or in the scratchpads."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.planning.divisions import OUTSIDE, Kernel
from spyre_mlir.transforms.kernel_plans.plan_record import PlannedBlock
from spyre_mlir.transforms.kernel_plans.unfit_buffers import unfit_reason
from spyre_mlir.transforms.utils.hints import hinted_place


def memory_reason(op: kernel.KernelOp, number: int, block: PlannedBlock | None) -> str:
    """Return why an operand is where it is.

    Args:
        op: the kernel in the finished program.
        number: of the operand.
        block: in which it was divided, if it was.
    """
    value = op.operands[number]
    if hinted_place(value) == kernel.device_tensor(value).space:
        return "a hint asks for it"
    if kernel.device_tensor(value).space == "lx":
        made_for_it = block is not None and not any(writer in block.ops for writer in _writers(value))
        return "a copy of what several kernels read" if made_for_it else "its kernels see the same slices of it"
    if isinstance(value.owner, TileOp):
        return "a block where the host says" if value.owner.is_placed_by_host else "a part of a tensor, one per trip"
    if isinstance(value.owner, ViewOp):
        return "is a buffer in device memory, read in another shape"
    if isinstance(value.owner, kernel.ToDeviceOp):
        return "comes from the host"
    if isinstance(value.owner, kernel.KernelConstantOp):
        return "is a constant"
    if not isinstance(value.owner, kernel.AllocOp):
        return "is handed in by the program"
    return unfit_reason(value) or _of_search(op, number, block)


def _writers(value: SSAValue) -> list[Operation]:
    return [u.operation for u in value.uses if isinstance(u.operation, kernel.KernelOp) and u.operation.output is value]


def _of_search(op: kernel.KernelOp, place: int, block: PlannedBlock | None) -> str:
    number = OUTSIDE if block is None else block.kernels[block.number(op)].operands[place]
    if block is None or number == OUTSIDE:
        return "its kernels were not divided together"
    seen = [_views(k, number) for k in block.kernels if number in k.operands]
    if not seen[0].intersection(*seen[1:]):
        return "no division lets all its kernels see the same slices of it"
    return "keeping it takes longer, or more room than there is"


def _views(found: Kernel, buffer: int) -> frozenset[object]:
    """The slices of a buffer that a kernel can see, by its candidates."""
    places = [place for place, number in enumerate(found.operands) if number == buffer]
    return frozenset(c.views[p] for c in found.candidates for p in places if c.views[p] is not None)


__all__ = ["memory_reason"]
