"""Pass `carry-in-place`: in trips of loops over slices, lets kernels write where copies would take their results.

```mlir
spyre.kernel.compute "add" … outs(%next)                  // made in the trip
spyre.kernel.compute "identity" ins(%next) outs(%h)       // what the loop carries
```
Steps behind the copy, in the same trip, read `%next` itself, and copies that are overwritten before anyone reads them
go. The kernels of the last step write `%h`, if no kernel behind them reads its old value. Kernels that make entries
write them into the tensor of all entries.

Decision: docs/decisions/0209-trips-of-loops-over-slices-make-several-steps.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from typing_extensions import TypeIs, override
from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, is_written, uses_with_tiles
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr, StickError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_BARE = {"space", "maps", "function"}  # the properties of a copy that rounds nothing


@dataclass(frozen=True)
class CarryInPlacePass(FunctionPass):
    """Takes copies out of the trips of loops."""

    name = "carry-in-place"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Look at the loops of a function."""
        for loop in [op for op in function.body.block.ops if isinstance(op, scf.ForOp)]:
            copies = _carrying_copies(loop.body.block)
            for home, several in copies.items():
                last = _carry_by_name(home, several, loop.body.block)
                _write_home(last, home, loop.body.block)
            for copy in [op for op in loop.body.block.ops if _is_copy(op)]:
                _write_entry(copy)
            _drop_unread(loop.body.block)


def _carrying_copies(body: Block) -> dict[SSAValue, list[kernel.ComputeOp]]:
    """The copies of a trip to each buffer that the loop carries, in order; each copies a buffer of its own."""
    found, sources = defaultdict[SSAValue, list[kernel.ComputeOp]](list), set[SSAValue]()
    order = _order(body)
    for op in body.ops:
        if not _is_copy(op) or op.inputs[0] in sources:
            continue
        source, home = op.inputs[0], op.output
        if not isinstance(source.owner, kernel.AllocOp) or source.owner.parent is not body:
            continue
        kernels = all(isinstance(use.operation, kernel.KernelOp) and use.operation in order for use in source.uses)
        final = kernels and not any(is_written(use) and order[use.operation] > order[op] for use in source.uses)
        if final and source.type == home.type and _is_carried(home, body):
            sources.add(source)
            found[home].append(op)
    return found


def _is_carried(value: SSAValue, body: Block) -> bool:
    """Whether a buffer is one of the caller, which only kernels use in a trip, and as a whole."""
    inside = [use.operation for use in value.uses if use.operation.parent is body]
    return _is_of_caller(value, body) and all(isinstance(op, kernel.KernelOp) for op in inside)


def _carry_by_name(home: SSAValue, copies: Sequence[kernel.ComputeOp], body: Block) -> kernel.ComputeOp:
    """Let what stands between two copies to a buffer use what the first one copies; return the last copy."""
    order = _order(body)
    for copy, behind in pairwise(copies):
        for use in list(home.uses):
            if use.operation in order and order[copy] < order[use.operation] < order[behind]:
                use.operation.operands[use.index] = copy.inputs[0]
        Rewriter.erase_op(copy)
    return copies[-1]


def _write_home(copy: kernel.ComputeOp, home: SSAValue, body: Block) -> None:
    """Let kernels write what the loop carries, instead of a buffer that is copied there in the end."""
    source, order = copy.inputs[0], _order(body)
    first = min((use.operation for use in source.uses), key=lambda op: order[op])
    inside = [use for use in home.uses if use.operation in order and use.operation is not copy]
    if any(order[use.operation] > order[first] for use in inside):
        return
    if any(use.operation is first and not _reads_where_it_writes(first, use.index) for use in inside):
        return
    source.replace_all_uses_with(home)
    Rewriter.erase_op(copy)


def _order(body: Block) -> dict[Operation, int]:
    return {op: number for number, op in enumerate(body.ops)}


def _reads_where_it_writes(op: Operation, number: int) -> bool:
    """Whether a kernel reads each element of an operand where it writes the result, before it writes it."""
    if not isinstance(op, kernel.ComputeOp) or number >= len(op.inputs) or not op.is_elementwise(number):
        return False
    return op.maps.data[number] == op.maps.data[-1]


def _write_entry(copy: Operation) -> None:
    """Let the kernel that makes an entry write it into the tensor of all entries."""
    if not isinstance(copy, kernel.ComputeOp) or not isinstance(tile := copy.output.owner, TileOp):
        return
    source = copy.inputs[0]
    alloc, block = source.owner, copy.parent
    if not isinstance(alloc, kernel.AllocOp) or tile.compact() != kernel.device_tensor(source) or block is None:
        return
    uses = [use for use in source.uses if use.operation is not copy]
    writer = uses[0].operation if len(uses) == 1 and is_written(uses[0]) else None
    if not isinstance(writer, kernel.ComputeOp) or writer.is_product or writer.parent is not block:
        return
    others = [use for use in uses_with_tiles(tile.source) if use.operation.parent is block]
    if not tile.result.has_one_use() or not _is_of_caller(tile.source, block) or not all(map(is_written, others)):
        return
    writer.operands[uses[0].index] = tile.result
    try:
        writer.verify_()
    except (StickError, VerifyException):  # it cannot walk through the whole tensor
        writer.operands[uses[0].index] = source
        return
    tile.detach()
    Rewriter.insert_op(tile, InsertPoint.before(writer))
    Rewriter.erase_op(copy)


def _drop_unread(body: Block) -> None:
    """Erase buffers that no kernel reads and what computes them: of what is carried unread, the last step's stays."""
    for alloc in [op for op in reversed(body.ops) if isinstance(op, kernel.AllocOp)]:
        users = [use.operation for use in alloc.result.uses]
        if all(isinstance(op, kernel.KernelOp) and op.output is alloc.result for op in users):
            for op in (*dict.fromkeys(users), alloc):
                Rewriter.erase_op(op)


def _is_copy(op: Operation) -> TypeIs[kernel.ComputeOp]:
    """Whether an op copies all of a buffer and changes nothing."""
    if not isinstance(op, kernel.ComputeOp) or op.function_name != COPY or hint_of(op) is not None:
        return False
    (source, made), (read, written) = op.tensors, op.maps.data
    alike = source.shape == made.shape and source.format == made.format and read == written
    if not alike or not set(op.properties) <= _BARE:
        return False
    extents = op.space.extents
    return all(_walks(e, extent, extents) for e, extent in zip(read.data, source.shape, strict=True))


def _walks(index: LinearExpr, extent: int, extents: Mapping[str, int]) -> bool:
    """Whether an index of a kernel takes every value of a dimension."""
    names = [name for name, _ in index.terms]
    if not names:
        return extent == 1 and index == LinearExpr()
    return index == LinearExpr.of(names[0]) and extents[names[0]] == extent


def _is_of_caller(value: SSAValue, body: Block) -> bool:
    return isinstance(value.owner, Block) and value.owner is not body
