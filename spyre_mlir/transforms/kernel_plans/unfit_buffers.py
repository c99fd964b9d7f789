"""Buffers that cannot be in the scratchpads, whatever the plan."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.kernel_view import ViewOp


def unfit_reason(value: SSAValue) -> str:
    """Return why a buffer cannot be in the scratchpads, whatever the plan; an empty text if it can."""
    users = [use.operation for use in value.uses]
    if any(isinstance(user, kernel.FromDeviceOp) for user in users):
        return "it goes to the host"
    if any(isinstance(user, kernel.RestickifyOp) for user in users):
        return "its layout is changed in device memory"
    if any(isinstance(op := u.operation, kernel.KernelOp) and not op.has_slices(u.index) for u in value.uses):
        return "a kernel finds its elements at run time"
    if any(isinstance(user, TileOp) for user in users):
        return "it is used in parts"
    if any(isinstance(user, ViewOp) for user in users):
        return "it is read in another shape"
    home = value.owner.parent_block() if isinstance(value.owner, Operation) else None
    if any(user.parent_block() is not home for user in users):
        return "a loop uses it as a whole"
    other = next((u.name for u in users if not isinstance(u, kernel.KernelOp | kernel.FreeOp)), None)
    return "" if other is None else f"{other} uses it"


__all__ = ["unfit_reason"]
