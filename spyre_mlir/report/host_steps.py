"""Counts of a program's host work: transfers, constants, launches, and operations that the device cannot run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.control import CondOp, ControlOp, ForLoopOp, WhileLoopOp
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.dialects.spyre.kernel import (
    AllocOp,
    FromDeviceOp,
    KernelConstantOp,
    LaunchOp,
    ToDeviceOp,
    device_tensor,
)
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.bundle.host_times import HostStepTime
from spyre_mlir.report.plots import short

_WORDS: dict[type[Operation], str] = {
    ToDeviceOp: "send a tensor to the device, in the layout its kernels read",
    KernelConstantOp: "write known numbers to device memory",
    AllocOp: "reserve device memory",
    BlockNumberOp: "find the block of a tensor that holds a position",
    TileOp: "work out where a block of a tensor starts",
    LaunchOp: "launch a bundle",
    FromDeviceOp: "bring a result back",
    CondOp: "decide between two functions",
    WhileLoopOp: "call a function as often as values ask for",
    ForLoopOp: "call a function once per entry of tensors",
}
_TRANSFERS = (ToDeviceOp, FromDeviceOp)


@dataclass(frozen=True)
class HostWork:
    """One kind of host work of a program, and its count.

    Attributes:
        what: one line.
        count: how many steps of this kind.
        bytes: what they move, all together.
        kind: the operation.
        us: how long they take at least; None where nobody knows, or where the time of kernels says it.
    """

    what: str
    count: int
    bytes: int
    kind: type[Operation] = Operation
    us: float | None = None

    @property
    def time(self) -> str:
        """Its time as text."""
        if issubclass(self.kind, HostOp):
            return "unknown"
        return "" if self.us is None else f"at least {self.us:.2f} us"


def left_out(host: Iterable[HostWork], steps: Sequence[HostStepTime] = ()) -> str:
    """Host work that the predicted time of a program omits, because no public source gives its duration.

    Args:
        host: what the host does.
        steps: its host steps, whose own transfers the time contains.
    """
    works = list(host)
    moved = sum(w.bytes for w in works if w.kind in (ToDeviceOp, FromDeviceOp)) - sum(s.moved_bytes for s in steps)
    transfers = "transfers between host and device" + (f" ({short(moved)}B)" if moved > 0 else "")
    counted = ""
    if any(issubclass(w.kind, ControlOp) for w in works):
        counted = "; every branch and body counts once, and only the run knows how often one runs"
    if not steps:
        return f"without {transfers}{counted}"
    unknown = "1 host step takes" if len(steps) == 1 else f"{len(steps)} host steps take"
    return f"without {transfers} of inputs and results, and the unknown time that {unknown}{counted}"


def host_steps(program: ModuleOp) -> list[HostWork]:
    """Count the host steps of a program by kind, in order of first use; other ops count by name."""
    found: dict[tuple[str, type[Operation]], list[int]] = {}
    for op in program.walk():
        if op.name.startswith(("builtin.", "func.")):
            continue
        found.setdefault((_what(op), type(op)), []).append(_bytes(op))
    return [
        HostWork(
            what,
            len(moved),
            sum(moved),
            kind,
            CALIBRATED.link_us(sum(moved)) if kind in _TRANSFERS else None,
        )
        for (what, kind), moved in found.items()
    ]


def _what(op: Operation) -> str:
    if isinstance(op, HostOp):
        reason = "it reads what is here" if op.reason is None else op.reason.data
        return f"run {op.callee.data}: {reason}"
    return _WORDS.get(type(op), op.name)


def _bytes(op: Operation) -> int:
    tensors = [v for v in (*op.operands, *op.results) if isinstance(v.type, DeviceTensorType)]
    if isinstance(op, LaunchOp) or not tensors:
        return 0
    return device_tensor(tensors[0]).sticks * STICK_BYTES
