"""Pass `stage-transfers`: parts kernels that read and write much of device memory in turns.

```mlir
spyre.kernel.compute "where3" … ins(%new, %cache) outs(%r)     // both in device memory
```
becomes
```mlir
spyre.kernel.compute "identity" … ins(%cache) outs(%s)         // %s in the scratchpads
spyre.kernel.compute "where3" … ins(%new, %s) outs(%r)
```
Or the kernel writes the scratchpads and a copy behind it device memory, whichever is quicker. Device memory loses time
where reads and writes alternate, which the cost model tells. Kernels are divided and buffers placed already; a stage
has the slices of its kernel, and an address that is free while that runs.

Decision: docs/decisions/0241-reads-and-writes-do-not-alternate.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, prod

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.dialects.boxes import box_of
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.static_loop import ancestor_in
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.placement import Request, first_fit
from spyre_mlir.hw.sticks import StickError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import kernel_work
from spyre_mlir.transforms.kernel_to_superdsc.kernel_times import kernel_us
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.hints import hinted_place

_STAGE = -1  # number of the request of a stage


@dataclass(frozen=True)
class StageTransfersPass(ModulePass):
    """Parts kernels that read and write device memory, where that is clearly quicker.

    Attributes:
        least_us: what a further kernel has to gain.
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "stage-transfers"

    least_us: int = 5
    numbers: tuple[str, ...] = ()

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at the kernels of every function, outside of its loops."""
        capacity, parameters = spec_of(ctx, op).lx_usable_bytes, given_numbers(self.numbers)
        for function in functions(op):
            block = function.body.block
            points = {one: number for number, one in enumerate(block.ops)}
            slow = [one for one in points if _lost_us(one, parameters) >= self.least_us]
            held = list(_held(block, points)) if slow else []
            for one in slow:
                present = [replace(r, first=0, last=0) for r in held if r.first <= points[one] <= r.last]
                if isinstance(one, kernel.ComputeOp):
                    _part(one, present, capacity, self.least_us, parameters)


def _lost_us(op: Operation, parameters: CostParameters) -> float:
    """Return what a kernel takes beyond its reads and its writes, each at the full rate; 0 if it may have no stage."""
    if not isinstance(op, kernel.ComputeOp) or op.is_product or hint_of(op) is not None:
        return 0.0
    if (us := kernel_us(op, parameters)) == inf:
        return 0.0
    work = kernel_work(op)
    both = all(any(not o.local and o.written == written for o in work.operands) for written in (False, True))
    return us - parameters.memory_us(work.moved()) if both else 0.0


def _held(block: Block, points: dict[Operation, int]) -> Iterator[Request]:
    """Yield what the scratchpads hold, and while which ops of the block."""
    for op, point in points.items():
        if isinstance(op, kernel.AllocOp) and op.offset is not None and (uses := list(op.result.uses)):
            tensor = kernel.device_tensor(op.result)
            if tensor.space == "lx":
                times, address = [points[ancestor_in(block, use.operation)] for use in uses], op.offset.value.data
                size = kernel.shared_view(op.result).bytes_per_core(tensor)
                yield Request(number=point, size=size, first=min(times), last=max(times), address=address)


def _part(
    op: kernel.ComputeOp, held: list[Request], capacity: int, least_us: float, parameters: CostParameters
) -> None:
    """Give a kernel the stage that gains most, if one gains clearly and the scratchpads have room for it.

    Args:
        op: the kernel.
        held: what the scratchpads hold while it runs.
        capacity: bytes of a scratchpad.
        least_us: what is a clear gain.
        parameters: of the cost model.
    """
    best, most_us = None, kernel_us(op, parameters) - least_us
    for number in _whole_operands(op):
        if (copy := _put(op, number, held, capacity)) is None:
            continue
        if (us := kernel_us(op, parameters) + kernel_us(copy, parameters)) <= most_us:
            best, most_us = number, us
        _take_away(op, number, copy)
    if best is not None:
        _put(op, best, held, capacity)


def _whole_operands(op: kernel.ComputeOp) -> list[int]:
    """Return the numbers of operands in device memory of which a kernel walks every element once."""
    extents, points = op.space.extents, prod(op.space.extents.values())
    found = list[int]()
    for number, tensor in enumerate(op.tensors):
        value, index = op.operands[number], op.maps.data[number]
        once = {name for name, extent in extents.items() if extent > 1} <= index.names and points == prod(tensor.shape)
        whole = box_of(op, index) == tuple((0, extent - 1) for extent in tensor.shape)
        made = isinstance(value.owner, kernel.AllocOp | kernel.ToDeviceOp) and list(op.operands).count(value) == 1
        if tensor.space == "hbm" and once and whole and made and op.has_slices(number) and not hinted_place(value):
            found.append(number)
    return found


def _put(op: kernel.ComputeOp, number: int, held: list[Request], capacity: int) -> kernel.ComputeOp | None:
    """Put a copy in the scratchpads in place of an operand; None if its slices cannot be there, or have no room."""
    value, index, written = op.operands[number], op.maps.data[number], number == len(op.inputs)
    tensor = replace(kernel.device_tensor(value), space="lx")
    alloc, block = kernel.AllocOp(DeviceTensorType(tensor)), op.parent_block()
    assert block is not None
    source, result = (alloc.result, value) if written else (value, alloc.result)
    copy = kernel.ComputeOp(op.space, [source], result, [index, index], {"function": StringAttr(COPY)})
    alloc.location = copy.location = op.location
    if (origin := op.attributes.get(ORIGIN)) is not None:
        copy.attributes[ORIGIN] = origin
    block.insert_op_before(alloc, op)
    (block.insert_op_after if written else block.insert_op_before)(copy, op)
    op.operands[number] = alloc.result
    try:
        op.verify_()
        copy.verify_()
        size = kernel.shared_view(alloc.result).bytes_per_core(tensor)
        address = first_fit([*held, Request(number=_STAGE, size=size, first=0, last=0)], capacity).get(_STAGE)
    except (StickError, VerifyException):
        address = None
    if address is None:
        _take_away(op, number, copy)
        return None
    alloc.offset = IntegerAttr(address, i64)
    return copy


def _take_away(op: kernel.ComputeOp, number: int, copy: kernel.ComputeOp) -> None:
    """Let a kernel have its operand again instead of a copy."""
    alloc = op.operands[number].owner
    op.operands[number] = copy.output if number == len(op.inputs) else copy.inputs[0]
    Rewriter.erase_op(copy)
    if isinstance(alloc, kernel.AllocOp):
        Rewriter.erase_op(alloc)


__all__ = ["StageTransfersPass"]
