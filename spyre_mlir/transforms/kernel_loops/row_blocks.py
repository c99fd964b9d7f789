"""Many rows that products of widened weights multiply, in blocks one after the other.

Where a weight of few bits goes from its conversion to its product in the scratchpads, all cores have columns of their
own, and each has all rows: a tile of the result too large for a core makes it read operands again. Blocks of rows have
smaller tiles, and the weight is still converted once for all of them.

Decision: docs/decisions/0172-narrow-weights-in-blocks-and-parts.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters
from spyre_mlir.hw.division import divisors
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow, ops_from
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.utils.nests.nest_parts import moved


def cut_rows(
    block: Block,
    is_widened: Callable[[SSAValue], bool],
    forms: KernelForms,
    parameters: CostParameters = CALIBRATED,
) -> None:
    """Cut the rows of products of widened weights, where they are too many, and of what follows from these row by row.

    Args:
        block: of kernels that are not divided.
        is_widened: whether a buffer has a weight of few bits in a wider format.
        forms: is told which kernels are cut.
        parameters: of the cost model.
    """
    done = set[Operation]()
    for op in [o for o in block.ops if isinstance(o, kernel.ComputeOp)]:
        if op in done or not is_widened_product(op, is_widened) or _tile(op) <= parameters.reread_from_tile_elements:
            continue
        group = _grown(op, is_widened)
        done.update(group.ops)
        fits = (
            n for n in divisors(group.pieces, group.pieces) if _tile(op) <= n * parameters.reread_from_tile_elements
        )
        if (blocks := next(fits, 1)) > 1 and not any(is_settled(other) for other in group.ops):
            forms.became(group.ops, _cut(group, blocks), partial(_cut_again, loops=group.loops, blocks=blocks))


def is_widened_product(op: kernel.KernelOp, is_widened: Callable[[SSAValue], bool]) -> bool:
    """Return whether a kernel multiplies rows by a widened weight."""
    return isinstance(op, kernel.ComputeOp) and op.is_product and is_widened(op.inputs[1]) and rows_loop(op) != ""


def is_settled(op: kernel.KernelOp) -> bool:
    """Return whether a hint or the program says how a kernel is divided."""
    return hint_of(op) is not None or any(d.split > 1 for d in op.space.data)


def rows_loop(op: kernel.KernelOp) -> str:
    """Return the only loop of a product over rows of its left operand; empty if there is none, or more."""
    left, right, result = (index.names for index in op.maps.data)
    rows = sorted((left & result) - right)
    return rows[0] if len(rows) == 1 and not left & right & result else ""


def _tile(op: kernel.ComputeOp) -> int:
    """The least elements of the result that a core has, with all rows: a stick of the narrow weight has columns."""
    return op.space.extents[rows_loop(op)] * lanes_behind(op.inputs[1])


def lanes_behind(value: SSAValue) -> int:
    """Return the most elements of a stick of a widened weight, or of what it was made of."""
    users = [use.operation for use in value.uses]
    made = [v for op in users if isinstance(op, kernel.KernelOp) and op.output is value for v in op.inputs]
    return max([kernel.device_tensor(value).lanes, *(lanes_behind(v) for v in made if v is not value)])


def _grown(op: kernel.ComputeOp, is_widened: Callable[[SSAValue], bool]) -> RowGroup:
    """The product, what follows from its rows element by element, and products of widened weights with as many rows."""
    group = next(g for g in grow(op, []) if g.loops[0] == rows_loop(op))
    for other in ops_from(op.next_op):
        if not isinstance(other, kernel.KernelOp):
            continue
        read = [number for number, value in enumerate(other.inputs) if value in group.written]
        if is_widened_product(other, is_widened) or (read and all(other.is_elementwise(n) for n in read)):
            group.take(other)
    return group


def _cut_again(ops: Sequence[kernel.KernelOp], loops: Sequence[str], blocks: int) -> list[list[kernel.KernelOp]]:
    return _cut(RowGroup.of(ops, loops), blocks)


def _cut(group: RowGroup, blocks: int) -> list[list[kernel.KernelOp]]:
    """Replace each kernel of a group by one for each block of rows, and return these."""
    block, internal = group.ops[0].parent_block(), set(group.internal())
    assert block is not None
    parts: dict[SSAValue, list[SSAValue]] = {}
    made = list[list[kernel.KernelOp]]()
    for op, loop, rows in zip(group.ops, group.loops, group.rows, strict=True):
        for value, dim in zip(op.operands, rows, strict=True):
            if dim is not None and value in internal and value not in parts:
                allocs = _buffers(value, dim, blocks)
                parts[value] = [alloc.result for alloc in allocs]
                block.insert_ops_before(allocs, op)
        extent = op.space.extents[loop] // blocks
        made.append([])
        for number in range(blocks):
            part = op.clone()
            part.location = op.location
            part.operands = [parts[value][number] if value in parts else value for value in op.operands]
            part.space = SpaceAttr(
                tuple(IterDim(d.name, extent if d.name == loop else d.extent) for d in op.space.data)
            )
            part.maps = ArrayAttr(
                [
                    index if value in parts else moved(index, loop, number * extent)
                    for value, index in zip(op.operands, op.maps.data, strict=True)
                ]
            )
            block.insert_op_before(part, op)
            made[-1].append(part)
    for op in reversed([*(v.owner for v in parts if isinstance(v.owner, Operation)), *group.ops]):
        Rewriter.erase_op(op)
    return made


def _buffers(value: SSAValue, dim: int, blocks: int) -> Sequence[kernel.AllocOp]:
    """Buffers for a block of rows each."""
    tensor = kernel.device_tensor(value)
    small = DeviceTensorType(tensor.shorter(dim, tensor.shape[dim] // blocks))
    made = [kernel.AllocOp(small) for _ in range(blocks)]
    for alloc in made:
        if isinstance(value.owner, Operation):
            alloc.attributes |= value.owner.attributes
            alloc.location = value.owner.location
    return made


__all__ = ["cut_rows", "is_settled", "is_widened_product", "lanes_behind", "rows_loop"]
