"""Time of host steps: transfers over the host's link are a lower bound, host computation is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre.host import SAYS_WHERE, HostOp
from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, LaunchOp, ToDeviceOp, device_tensor
from spyre_mlir.hw.cost_parameters import PROFILES, Profile
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.bundle.schedule import source_line


@dataclass(frozen=True)
class HostStepTime:
    """A host step, with the known part of its time.

    Attributes:
        op: the operator with its namespace.
        after: how many launches come before it.
        moved_bytes: what is brought from the device and sent there only because the host computes this step.
        least_us: how long that takes at least; how long the host computes is not known.
        source: file and line of the model, if known.
        by_choice: whether the device could do without: the step is there because it is quicker.
    """

    op: str
    after: int
    moved_bytes: int
    least_us: float
    source: str = ""
    by_choice: bool = False


def host_times(program: ModuleOp, profile: Profile = "calibrated") -> tuple[HostStepTime, ...]:
    """Return the host steps of a host program, in order; a tensor read by two of them is transferred for the first."""
    found, launched, moved = list[HostStepTime](), 0, set[SSAValue]()
    for op in program.walk():
        launched += isinstance(op, LaunchOp)
        if isinstance(op, HostOp):
            buffers = [b for b in _transfers(op) if b not in moved]
            moved.update(buffers)
            count = sum(device_tensor(b).sticks for b in buffers) * STICK_BYTES
            place = source_line(str(op.location))
            by_choice = op.reason is not None and op.reason.data == SAYS_WHERE
            found.append(
                HostStepTime(op.callee.data, launched, count, PROFILES[profile].link_us(count), place, by_choice)
            )
    return tuple(found)


def _transfers(op: HostOp) -> Iterator[SSAValue]:
    """The device tensors that a host step reads, and those that are made of its results."""
    for operand in op.operands:
        if isinstance(operand.owner, FromDeviceOp):
            yield operand.owner.source
    for use in (use for result in op.results for use in result.uses):
        if isinstance(use.operation, ToDeviceOp):
            yield use.operation.result


__all__ = ["HostStepTime", "host_times"]
