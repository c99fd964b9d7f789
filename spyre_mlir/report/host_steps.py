"""What the host does for a program, counted: transfers, known numbers, launches, and what the device cannot run."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.dialects.spyre.kernel import AllocOp, ConstantOp, FromDeviceOp, LaunchOp, ToDeviceOp, device_tensor
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.report.page import HostStep

_WORDS: dict[type[Operation], str] = {
    ToDeviceOp: "send a tensor to the device, in the layout its kernels read",
    ConstantOp: "write known numbers to device memory",
    AllocOp: "reserve device memory",
    LaunchOp: "launch a bundle",
    FromDeviceOp: "bring a result back",
}


def host_steps(program: ModuleOp) -> list[HostStep]:
    """The steps of a host program by kind, in the order of the kinds' first use; other ops by their names."""
    found: dict[str, list[int]] = {}
    for op in program.walk():
        if op.name.startswith(("builtin.", "func.")):
            continue
        found.setdefault(_what(op), []).append(_bytes(op))
    return [HostStep(what, len(moved), sum(moved)) for what, moved in found.items()]


def _what(op: Operation) -> str:
    if isinstance(op, HostOp):
        reason = "it reads what is here" if op.reason is None else op.reason.data
        return f"run {op.callee.data}: {reason}"
    return _WORDS.get(type(op), op.name)


def _bytes(op: Operation) -> int:
    tensors = [v for v in (*op.operands, *op.results) if isinstance(v.type, DeviceTensorType)]
    if isinstance(op, LaunchOp) or not tensors:
        return 0
    return device_tensor(tensors[0]).sticks * SPYRE.stick_bytes
