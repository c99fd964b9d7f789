"""What the host does for a program, counted: transfers, known numbers, launches, and what the device cannot run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.dialects.spyre.kernel import AllocOp, ConstantOp, FromDeviceOp, LaunchOp, ToDeviceOp, device_tensor
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.report.plots import short

_WORDS: dict[type[Operation], str] = {
    ToDeviceOp: "send a tensor to the device, in the layout its kernels read",
    ConstantOp: "write known numbers to device memory",
    AllocOp: "reserve device memory",
    LaunchOp: "launch a bundle",
    FromDeviceOp: "bring a result back",
}


@dataclass(frozen=True)
class HostWork:
    """What the host does for a program, and how often.

    Attributes:
        what: one line.
        count: how many steps of this kind.
        bytes: what they move, all together.
        kind: the operation.
    """

    what: str
    count: int
    bytes: int
    kind: type[Operation] = Operation


def left_out(host: Iterable[HostWork]) -> str:
    """What the predicted time of a program leaves out: no public source says how long the host takes for it."""
    work = list(host)
    moved = sum(w.bytes for w in work if w.kind in (ToDeviceOp, FromDeviceOp))
    steps = sum(w.count for w in work if issubclass(w.kind, HostOp))
    transfers = "transfers between host and device" + (f" ({short(moved)}B)" if moved else "")
    also = f" and {steps} host step{'s' * (steps > 1)}" if steps else ""
    return f"without {transfers}{also}"


def host_steps(program: ModuleOp) -> list[HostWork]:
    """The steps of a host program by kind, in the order of the kinds' first use; other ops by their names."""
    found: dict[tuple[str, type[Operation]], list[int]] = {}
    for op in program.walk():
        if op.name.startswith(("builtin.", "func.")):
            continue
        found.setdefault((_what(op), type(op)), []).append(_bytes(op))
    return [HostWork(what, len(moved), sum(moved), kind) for (what, kind), moved in found.items()]


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
