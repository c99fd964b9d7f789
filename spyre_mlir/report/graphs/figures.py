"""Figures of nodes and modules, as text with units in their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation

from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.dialects.spyre.loop import NestOp, YieldOp
from spyre_mlir.dialects.spyre.scalars import ApplyOp
from spyre_mlir.machine.bundle.timeline import TimedKernel
from spyre_mlir.report.shares import moves
from spyre_mlir.report.timing import three_digits

Figures = dict[str, str]


def op_figures(kernels: Sequence[TimedKernel], total_us: float) -> Figures:
    """Figures of what several kernels have in common: their number, time, traffic, and part of the whole time."""
    us, moving = (sum(k.cost.total for k in some) for some in (kernels, [k for k in kernels if moves(k)]))
    return {
        "kernels": str(len(kernels)),
        "time, us": three_digits(us),
        "part of the time": _part(us, total_us),
        "rearranging data, us": three_digits(moving),
        "device memory, bytes": str(sum(_moved(k) for k in kernels)),
    }


def module_figures(
    kernels: Iterable[tuple[tuple[str, ...], TimedKernel]],
) -> dict[tuple[str, ...], Mapping[str, str]]:
    """Return the figures of every module with a kernel in it or below, and of the program, by group."""
    found: dict[tuple[str, ...], list[TimedKernel]] = {(): []}
    for group, kernel in kernels:
        for depth in range(len(group) + 1):
            found.setdefault(group[:depth], []).append(kernel)
    total = sum(k.cost.total for k in found[()])
    return {group: op_figures(some, total) for group, some in found.items()}


def loop_figures(op: Operation) -> Figures:
    """Figures of an op at the loop level: its iteration space and what it computes per point."""
    if not isinstance(op, NestOp):
        return host_figures(op)
    points = 1
    for dim in op.space.data:
        points *= dim.extent
    scalars = [
        inner.function.data if isinstance(inner, ApplyOp) else inner.name.rpartition(".")[2]
        for inner in op.body.block.ops
        if not isinstance(inner, YieldOp | ConstantOp)
    ]
    return {
        "loops": ", ".join(f"{dim.name} = {dim.extent}" for dim in op.space.data),
        "points": str(points),
        "per point": ", ".join(scalars) or "copy",
    } | ({} if op.combine is None else {"reduction": op.combine.data.rpartition(".")[2]})


def kernel_figures(op: Operation, timed: TimedKernel | None, total_us: float) -> Figures:
    """Figures of an op at the kernel level: loops and cores, memories, predicted time."""
    if not isinstance(op, KernelOp) or timed is None:
        return host_figures(op)
    loops = (f"{d.name} = {d.extent}" + (f" over {d.split} cores" if d.split > 1 else "") for d in op.space.data)
    memories = [device_tensor(value).space for value in (*op.inputs, op.output)]
    return {
        "loops": ", ".join(loops),
        "inputs in": ", ".join(memories[:-1]),
        "result in": memories[-1],
        **_time(timed, total_us),
    }


def launch_figures(op: Operation, timed: TimedKernel | None, total_us: float) -> Figures:
    """Figures of a file: what it says of loops, units and operands, and its predicted time."""
    if not isinstance(op, KernelOp) or timed is None:
        return host_figures(op)
    descriptor = timed.launch.descriptor
    return {
        "file": timed.launch.file,
        "unit": descriptor.unit,
        "loops": ", ".join(f"{d.label} = {d.extent} / {d.split}" for d in descriptor.dims),
        "operands": ", ".join(f"{o.format} in {o.component}" for o in descriptor.operands),
        "launch": str(timed.launch.part),
        **_time(timed, total_us),
    }


def host_figures(op: Operation) -> Figures:
    """Return why the host runs a step."""
    return {"on the host because": op.reason.data} if isinstance(op, HostOp) and op.reason is not None else {}


def _time(timed: TimedKernel, total_us: float) -> Figures:
    runs = {"runs": str(timed.work.trips)} if timed.work.trips != 1 else {}
    return {
        "time, us": three_digits(timed.cost.total),
        "part of the time": _part(timed.cost.total, total_us),
        "waits for": timed.cost.bound.value,
        "cores": str(timed.work.cores),
        "device memory, bytes": str(_moved(timed)),
        "computes": "no, it rearranges data" if moves(timed) else "yes",
        **runs,
    }


def _moved(kernel: TimedKernel) -> int:
    return kernel.work.moved() * kernel.work.trips


def _part(us: float, whole: float) -> str:
    return f"{us / whole:.1%}" if whole else "0.0%"
