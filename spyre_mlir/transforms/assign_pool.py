"""Pass `assign-pool`: assigns every intermediate buffer an offset in the device-memory pool.

Buffers the host reads stay outside: they are arguments of the bundle. So do those that several launches use, since a
launch has a pool of its own. The others get the lowest free bytes for as
long as they live, and a `spyre.kernel.free` behind their last use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from typing_extensions import override
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import uses_with_tiles
from spyre_mlir.dialects.spyre.static_loop import ancestor_in
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.kernels.launches import Launches, launch_numbers, one_launch
from spyre_mlir.transforms.utils.patterns import apply_once
from spyre_mlir.transforms.utils.rebuild import describe_location


@dataclass
class FirstFit:
    """First-fit allocator of byte ranges: lowest offset first; freed ranges are reused.

    Args:
        size_bytes: bytes there are.
    """

    size_bytes: int
    taken: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def take(self, size: int) -> int | None:
        """Return the offset of `size` free bytes, or None if there is no such gap."""
        start = 0
        for low, high in self.taken:
            if low - start >= size:
                break
            start = high
        if start + size > self.size_bytes:
            return None
        self.taken.append((start, start + size))
        self.taken.sort()
        return start

    def release(self, offset: int) -> None:
        """Free the range that starts at `offset`."""
        self.taken = [r for r in self.taken if r[0] != offset]


def size_bytes(alloc: kernel.AllocOp) -> int:
    """Return the bytes a buffer takes."""
    return kernel.device_tensor(alloc.result).sticks * STICK_BYTES


def is_pooled(alloc: kernel.AllocOp, launches: Launches) -> bool:
    """Return whether a buffer is an intermediate in device memory: one launch uses it, and the host never reads it."""
    if kernel.device_tensor(alloc.result).space != "hbm":
        return False
    if any(isinstance(u.operation, kernel.FromDeviceOp | ControlOp | func.ReturnOp) for u in alloc.result.uses):
        return False
    return one_launch((u.operation for u in uses_with_tiles(alloc.result)), launches)


@dataclass(frozen=True)
class AssignPoolPass(FunctionPass):
    """Sets the pool offset of intermediate buffers."""

    name = "assign-pool"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Place the buffers of a function."""
        block = function.body.block
        launches = launch_numbers(block)
        check_card(list(block.ops), spec, launches)
        ends: dict[Operation, Operation] = {}
        _assign(block, FirstFit(spec.pool_bytes), spec, launches, ends)
        apply_once(FreeBehindLastUse(ends), function.body)


def check_card(ops: list[Operation], spec: SpyreSpec, launches: Launches) -> None:
    """Raise LoweringError if the tensors that live outside the pool do not fit the card.

    They are what the host sends and reads: weights, constants, inputs and results.
    """
    sent = (kernel.ToDeviceOp, kernel.KernelConstantOp, kernel.AllocOp)
    outside = [o for o in ops if isinstance(o, sent) and not (isinstance(o, kernel.AllocOp) and is_pooled(o, launches))]
    sizes = [kernel.device_tensor(o.results[0]).sticks * STICK_BYTES for o in outside]
    if sum(sizes) > spec.hbm_card_bytes:
        largest = outside[sizes.index(max(sizes))]
        raise LoweringError(
            f"weights, inputs and results take {sum(sizes)} bytes, the card has {spec.hbm_card_bytes}",
            where=f"the largest, {max(sizes)} bytes: {largest.name} at {describe_location(largest)}",
            hint="use a smaller model, or divide it over several cards",
        )


@dataclass
class FreeBehindLastUse(RewritePattern):
    """Ends the life of a placed buffer behind its last use.

    Attributes:
        ends: placed buffers' allocs, with the last op of their block that uses them.
    """

    ends: Mapping[Operation, Operation]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: kernel.AllocOp, rewriter: PatternRewriter, /) -> None:
        """Insert the free of one buffer."""
        if (end := self.ends.get(op)) is not None:
            rewriter.insert(kernel.FreeOp(op.result), InsertPoint.after(end))


def _assign(
    block: Block, pool: FirstFit, spec: SpyreSpec, launches: Launches, ends: dict[Operation, Operation]
) -> None:
    """Places the buffers of a block; those of a loop are free again at the end of every trip."""
    ops = list(block.ops)
    numbers = {op: number for number, op in enumerate(ops)}
    dying: dict[Operation, list[kernel.AllocOp]] = {}
    for op in ops:
        if isinstance(op, kernel.AllocOp) and is_pooled(op, launches):
            op.offset = IntegerAttr(_take(op, pool, spec), i64)
        if isinstance(op, kernel.AllocOp) and op.offset is not None:
            used = [numbers[ancestor_in(block, u.operation)] for u in uses_with_tiles(op.result)]
            ends[op] = ops[max(used, default=numbers[op])]
            dying.setdefault(ends[op], []).append(op)
        if isinstance(op, scf.ForOp):
            _assign(op.body.block, pool, spec, launches, ends)
        for dead in dying.pop(op, []):
            if dead.offset is not None and is_pooled(dead, launches):
                pool.release(dead.offset.value.data)


def _take(alloc: kernel.AllocOp, pool: FirstFit, spec: SpyreSpec) -> int:
    size = size_bytes(alloc)
    offset = pool.take(size)
    if offset is None:
        raise LoweringError(
            f"the pool has {spec.pool_bytes} bytes, no {size} of them free for this buffer",
            where=f"{alloc.name} at {describe_location(alloc)}",
            hint="use a smaller batch or sequence",
        )
    return offset
