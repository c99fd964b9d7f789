"""Launches of a function: the kernels between two host steps or calls, and what they are handed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, func, scf
from xdsl.ir import Block, Operation, SSAValue

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel_loop import (
    BlockNumberOp,
    TileOp,
    is_placed_by_host,
    launch_arguments,
    launch_origin,
)
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.utils.rebuild import describe_location


@dataclass
class KernelLaunch:
    """The kernels of one launch, and the buffers they use by where these are.

    Attributes:
        call: the call that launches them, if they are a region's.
    """

    call: func.CallOp | None = None
    body: list[Operation] = field(default_factory=list[Operation])
    arguments: list[SSAValue] = field(default_factory=list[SSAValue])
    pooled: list[kernel.AllocOp] = field(default_factory=list[kernel.AllocOp])
    local: list[kernel.AllocOp] = field(default_factory=list[kernel.AllocOp])

    @property
    def key(self) -> str | int:
        """Equal for launches of one bundle function: the name of the region, or a number of the launch's own."""
        return id(self) if self.call is None else self.call.callee.root_reference.data

    def operands(self, callee: func.FuncOp | None) -> list[SSAValue]:
        """The buffers it is launched with; the blocks of a call's are made in front of the call."""
        if self.call is None or callee is None:
            return self.arguments
        given: dict[SSAValue, SSAValue] = dict(zip(callee.body.block.args, self.call.arguments, strict=True))
        return [_placed(value, given, self.call) for value in self.arguments]


def launches_of(block: Block, called: Mapping[str, func.FuncOp]) -> list[KernelLaunch]:
    """The launches of a function, in order: calls, and the ops between two of them or of the host steps."""
    found = [KernelLaunch()]
    for op in block.ops:
        match op:
            case KernelHostOp() | ControlOp():
                found.append(KernelLaunch())
            case func.CallOp():
                found += [_of_call(op, called), KernelLaunch()]
            case _ if _is_hosts(op):
                pass
            case _:
                _check_kept(op)
                found[-1].body.append(op)
    found = [launch for launch in found if launch.call is not None or _runs_kernels(launch.body)]
    values = [*block.args, *(result for op in block.walk() for result in op.results)]
    order: dict[SSAValue, int] = {value: number for number, value in enumerate(values)}
    for launch in found:
        if launch.call is not None:
            continue
        kernels = [o for op in launch.body for o in op.walk() if isinstance(o, kernel.KernelOp)]
        used = {launch_origin(v).buffer for op in kernels for v in op.operands}
        for value in sorted(used, key=lambda v: order[v]):
            _sort(value, launch)
    _check_lifetimes(found)
    return found


def _is_hosts(op: Operation) -> bool:
    """Return whether an op makes what launches are handed, or ends the function: it stays in the host program."""
    ends = isinstance(op, kernel.FromDeviceOp | func.ReturnOp | BlockNumberOp)
    return ends or (isinstance(op, kernel.ArgumentOp | TileOp) and _is_argument(op.results[0]))


def _runs_kernels(ops: Sequence[Operation]) -> bool:
    return any(isinstance(o, kernel.KernelOp) for op in ops for o in op.walk())


def _of_call(call: func.CallOp, called: Mapping[str, func.FuncOp]) -> KernelLaunch:
    """The launch of a region's kernels."""
    block = called[call.callee.root_reference.data].body.block
    launch = KernelLaunch(call, arguments=launch_arguments(block))
    for op in block.ops:
        if not isinstance(op, func.ReturnOp | BlockNumberOp) and not (op.results and is_placed_by_host(op.results[0])):
            _check_kept(op)
            launch.body.append(op)
        for inner in op.walk():
            if isinstance(inner, kernel.AllocOp):
                _sort(inner.result, launch)
    return launch


def _placed(value: SSAValue, given: dict[SSAValue, SSAValue], call: func.CallOp) -> SSAValue:
    """A value of a region's function in its caller, where blocks and their numbers are made in front of the call."""
    if value not in given:
        owner = value.owner
        if not isinstance(owner, TileOp | BlockNumberOp) or (block := call.parent_block()) is None:
            raise LoweringError("a buffer of a region that its caller does not have", where=describe_location(call))
        made = owner.clone({v: _placed(v, given, call) for v in owner.operands})
        made.location = call.location
        block.insert_op_before(made, call)
        given[value] = made.results[0]
    return given[value]


def _is_argument(value: SSAValue) -> bool:
    """Return whether a buffer is a tensor of its own in device memory, or a block of one where the host says."""
    owner = value.owner
    if isinstance(owner, kernel.AllocOp):
        return owner.offset is None and kernel.device_tensor(value).space == "hbm"
    return is_placed_by_host(value) or isinstance(owner, (kernel.ToDeviceOp, kernel.KernelConstantOp, ControlOp, Block))


def _sort(value: SSAValue, launch: KernelLaunch) -> None:
    owner = value.owner
    if _is_argument(value):
        launch.arguments.append(value)
    elif isinstance(owner, kernel.AllocOp):
        (launch.local if kernel.device_tensor(value).space == "lx" else launch.pooled).append(owner)


_KEPT = (
    kernel.KernelOp,
    kernel.AllocOp,
    kernel.FreeOp,
    TileOp,
    ViewOp,
    scf.ForOp,
    scf.YieldOp,
    arith.ConstantOp,
)


def _check_kept(op: Operation) -> None:
    """Raises LoweringError unless an op among kernels, or one in a loop of them, is what may stand there."""
    for inner in op.walk():
        if not isinstance(inner, _KEPT):
            raise LoweringError(
                f"{inner.name} among kernel ops",
                where=describe_location(inner),
                hint="run the passes before this one first",
            )


def _check_lifetimes(launches: Sequence[KernelLaunch]) -> None:
    """Raises LoweringError if a buffer in a pool or in the scratchpads would have to outlive a launch."""
    seen: set[kernel.AllocOp] = set()
    for launch in launches:
        if launch.call is not None:
            continue
        own = {*launch.pooled, *launch.local}
        for op in own & seen:
            raise LoweringError(
                "two launches use a buffer in the pool or the scratchpads, which are lost between them",
                where=f"{op.name} at {describe_location(op)}",
                hint="leave out its address, and place it in hbm",
            )
        seen |= own


def hoist(op: kernel.LaunchOp, launch: KernelLaunch, block: Block) -> None:
    """Puts what makes tensors among the kernels of a launch before it, in its order: it numbers the tensors."""
    if launch.call is not None:
        return
    ops = list(block.ops)
    for inner in ops[ops.index(op) : ops.index(launch.body[-1])]:
        if isinstance(inner, BlockNumberOp) or (inner.results and _is_argument(inner.results[0])):
            inner.detach()
            block.insert_op_before(inner, op)


def erase(launches: Sequence[KernelLaunch]) -> None:
    """Takes the kernels of its launches from a function."""
    for launch in launches:
        for op in [launch.call] if launch.call is not None else reversed(launch.body):
            take_apart(op)


__all__ = ["KernelLaunch", "erase", "hoist", "launches_of"]
