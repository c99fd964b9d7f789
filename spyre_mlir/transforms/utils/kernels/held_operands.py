"""Operands of kernels that the scratchpads may hold: buffers of their own, and copies of what the host sends.

Decision: docs/decisions/0251-steps-share-copies-of-weights.md
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from xdsl.dialects import func, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, buffer_behind
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.ops.hardware_functions import COPY


def may_hold(value: SSAValue, *, written: bool) -> bool:
    """Return whether the scratchpads may hold a tensor, or, if it is not written, a copy of it."""
    if written:
        return isinstance(value.owner, kernel.AllocOp)
    return isinstance(value.owner, kernel.AllocOp | TileOp) or _is_sent(value)


def _is_sent(value: SSAValue) -> bool:
    """Return whether the host sends a tensor, to a function over slices as well that becomes a loop of its caller."""
    if not isinstance(value, BlockArgument):
        return isinstance(value.owner, kernel.ToDeviceOp)
    function = value.owner.parent_op()
    if not isinstance(function, func.FuncOp) or not any(isinstance(op, scf.ForOp) for op in function.body.block.ops):
        return False
    module, name = function.parent_op(), function.sym_name.data
    calls = [] if module is None else [op for op in module.walk() if isinstance(op, func.CallOp)]
    operands = [call.operands[value.index] for call in calls if call.callee.root_reference.data == name]
    # A function that is called twice stays one, and its arguments lie where its callers have them.
    return len(operands) == 1 and _is_sent(operands[0])


def holds_rows(op: GatherOp) -> bool:
    """Return whether plans may have the rows that a gather copies in the scratchpads.

    Of rows that are copied in parts each core has a few columns, unless a part is a head, or an entry of another
    dimension. Steps that compute with columns are quick until a sum needs whole rows, and a search that has left the
    other ways by then ends in a slower plan. Copies take them on.
    """
    if joins_rows(op) or all(len(expr.terms) < 2 for expr in op.maps.data[-1].data):
        return True
    readers = [use.operation for use in op.output.uses if use.index < len(use.operation.operands) - 1]
    return all(isinstance(r, kernel.ComputeOp) and r.function_name == COPY for r in readers)


def joins_rows(op: Operation) -> bool:
    """Return whether an op is a gather whose rows lie behind each other in its result, as places of pages do."""
    if not isinstance(op, GatherOp):
        return False
    indices, _, rows = (m.data for m in op.maps)
    named = {name for expr in indices[-1:] for name, _ in expr.terms}
    return any(len(expr.terms) > 1 and any(name in named for name, _ in expr.terms) for expr in rows)


def cores_of_rows(op: kernel.KernelOp) -> int | None:
    """Return on how many cores a gather is whose joined rows an op reads, or another one computes element by element.

    Cores share whole sticks of indices, so that a gather may have few; in their scratchpads only these have the rows.
    """
    writers = _writers(op)
    near = [w for w in writers if any(w.is_elementwise(number) for number in range(len(w.inputs)))]
    gathers = [w for w in (*writers, *(other for w in near for other in _writers(w))) if joins_rows(w)]
    return min([prod(gather.space_splits().values()) for gather in gathers], default=None)


def _writers(op: kernel.KernelOp) -> list[kernel.KernelOp]:
    """The kernels that write what an op reads."""
    users = [(value, use.operation) for value in op.inputs for use in value.uses if use.operation is not op]
    return [user for value, user in users if isinstance(user, kernel.KernelOp) and user.output is value]


def copied_inputs(ops: Sequence[kernel.KernelOp]) -> set[SSAValue]:
    """Return tensors from the host, and tiles, that several kernels read and none writes: `place-lx` may copy them.

    Kernels that read a part each do not share it, unless their parts are more than the tensor together.
    """
    readers = dict[SSAValue, dict[kernel.KernelOp, int]]()
    for op in ops:
        if isinstance(op, kernel.ComputeOp):
            for number, value in enumerate(op.inputs):
                if isinstance(value.owner, TileOp) or _is_sent(value):
                    readers.setdefault(value, {})[op] = number
    shared = {value: numbers for value, numbers in readers.items() if len(numbers) > 1}
    if not shared:
        return set()
    written = {buffer_behind(op.output) for op in ops}
    return {
        value
        for value, numbers in shared.items()
        if buffer_behind(value) not in written
        if sum([op.operand_bytes(number) for op, number in numbers.items()]) > _whole_bytes(value)
    }


def _whole_bytes(value: SSAValue) -> int:
    tensor = value.owner.compact() if isinstance(value.owner, TileOp) else kernel.device_tensor(value)
    return tensor.sticks * STICK_BYTES


def buffers_of(ops: Sequence[kernel.KernelOp]) -> set[SSAValue]:
    """Return buffers that are made, written and read by these kernels alone, and not relaid out."""
    read, found = set[SSAValue](), dict[SSAValue, bool]()
    own = set[Operation](op for op in ops if not isinstance(op, kernel.RestickifyOp))
    for op in ops:
        *inputs, output = op.operands
        for value in inputs:
            found.setdefault(value, False)
        read.update(inputs)
        if output not in found:
            found[output] = _is_own(output, own)
    return {value for value, held in found.items() if held and value in read}


def _is_own(value: SSAValue, ops: Container[Operation]) -> bool:
    """Return whether a buffer without a place is used by these ops alone."""
    if not isinstance(value.owner, kernel.AllocOp) or value.owner.offset is not None:
        return False
    users = (use.operation for use in value.uses)
    return all(user in ops or isinstance(user, kernel.FreeOp) for user in users)


__all__ = ["buffers_of", "copied_inputs", "cores_of_rows", "holds_rows", "joins_rows", "may_hold"]
