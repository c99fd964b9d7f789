"""Check of texts changed by hand: kernels read buffers that are written before, and loops write all of them.

Decision: docs/decisions/0183-loops-by-hint.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import func
from xdsl.ir import Block, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, buffer_behind, uses_with_tiles
from spyre_mlir.dialects.spyre.static_loop import loop_bounds, loop_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.utils.rebuild import describe_location


def check_written(block: Block) -> None:
    """Check that buffers are written before they are read, and that the trips of loops together write all of one.

    Raises:
        LoweringError: a kernel or the host reads a buffer that nothing writes, or that only kernels behind it write, or
            loops leave a part out.
    """
    kernels = [op for op in block.walk() if isinstance(op, kernel.KernelOp)]
    called = {value for op in block.ops if isinstance(op, func.CallOp) for value in op.arguments}
    writers: dict[SSAValue, list[kernel.KernelOp]] = {}
    for op in kernels:
        buffer = buffer_behind(op.output)
        if isinstance(buffer.owner, kernel.AllocOp) and buffer not in called:  # functions write what they are handed
            writers.setdefault(buffer, []).append(op)
    _check_order(kernels, writers)
    if _gives_results(block):
        for op in block.walk():
            if isinstance(op, kernel.AllocOp) and op.result not in writers:
                _check_unread(op.result)
    for buffer, ops in writers.items():
        _check_whole(buffer, ops)


def _check_order(kernels: Iterable[kernel.KernelOp], writers: Mapping[SSAValue, Sequence[kernel.KernelOp]]) -> None:
    """Refuse a kernel that reads a buffer which only kernels behind it write."""
    written = set[SSAValue]()
    for op in kernels:
        for buffer in map(buffer_behind, op.inputs):
            if buffer in writers and buffer not in written:
                writer = writers[buffer][0]
                raise LoweringError(
                    f"{op.function_name} reads a buffer that {writer.function_name} at {describe_location(writer)} "
                    "writes behind it",
                    where=f"{op.function_name} at {describe_location(op)}",
                    hint="move the kernel behind it",
                )
        written.add(buffer_behind(op.output))


def _gives_results(block: Block) -> bool:
    """Whether the host or a caller gets something: kernels alone may read what the text has no place for."""
    return any(
        isinstance(op, kernel.FromDeviceOp) or (isinstance(op, func.ReturnOp) and op.operands) for op in block.ops
    )


def _check_unread(buffer: SSAValue) -> None:
    """Refuse a reader of a buffer that nothing writes: it would find what another buffer left at this address."""
    ops = [use.operation for use in uses_with_tiles(buffer)]
    readers = [op for op in ops if isinstance(op, kernel.KernelOp | kernel.FromDeviceOp | func.ReturnOp)]
    if not readers or any(op not in readers and not isinstance(op, kernel.FreeOp) for op in ops):
        return  # functions and the host write, too
    name = readers[0].function_name if isinstance(readers[0], kernel.KernelOp) else readers[0].name
    raise LoweringError(
        f"{name} reads a buffer that nothing writes",
        where=f"{name} at {describe_location(readers[0])}",
        hint="write it first, by a kernel with this buffer in its outs",
    )


def _check_whole(buffer: SSAValue, writers: Sequence[kernel.KernelOp]) -> None:
    """Refuse loops whose trips leave a part of a buffer unwritten."""
    if (gap := _gap(buffer, writers)) is not None:
        dim, first, end = gap
        raise LoweringError(
            f"the trips of loops leave elements {first} to {end} of dimension {dim} of a buffer unwritten, "
            f"which has {kernel.device_tensor(buffer).shape[dim]}",
            where=f"{writers[0].function_name} at {describe_location(writers[0])}",
            hint="change trips, tiles and kernels of the loop together, or ask for trips by a hint before plan: "
            "spyre.hint = {tile = {m = 4}}",
        )


def _gap(value: SSAValue, writers: Iterable[kernel.KernelOp]) -> tuple[int, int, int] | None:
    """The first part of a tensor that no tile of it covers: its dimension, begin and end; None if there is none."""
    outputs = {op.output for op in writers}
    if value in outputs:
        return None
    tiles = [u.operation for u in value.uses if isinstance(u.operation, TileOp)]
    tiles = [tile for tile in tiles if _leads_to(tile.result, outputs)]
    dims = {tile.dim.value.data for tile in tiles}
    if len(dims) != 1 or any(loop_of(tile.index) is None for tile in tiles):
        return None  # views, blocks that the host chooses, tiles of several dimensions: not known
    (dim,) = dims
    covered = sorted(part for tile in tiles for part in _parts(tile))
    end = kernel.device_tensor(value).shape[dim]
    reached = 0
    for first, last in [*covered, (end, end)]:
        if first > reached:
            return dim, reached, first
        reached = max(reached, last)
    return next((gap for tile in tiles if (gap := _gap(tile.result, writers)) is not None), None)


def _leads_to(value: SSAValue, outputs: set[SSAValue]) -> bool:
    inner = (u.operation.result for u in value.uses if isinstance(u.operation, TileOp))
    return value in outputs or any(_leads_to(tile, outputs) for tile in inner)


def _parts(tile: TileOp) -> list[tuple[int, int]]:
    """First element and end of the tile in each trip."""
    loop, first, step = loop_of(tile.index), tile.first_element, tile.step.value.data
    size = kernel.device_tensor(tile.result).shape[tile.dim.value.data]
    return [] if loop is None else [(first + i * step, first + i * step + size) for i in loop_bounds(loop).values]


__all__ = ["check_written"]
