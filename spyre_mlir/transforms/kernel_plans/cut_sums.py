"""Products that only a divided sum brings within a core's reach, as products of parts of the sum that are added up.

A sum that is divided over cores keeps half of a core busy. Parts of the sum one after the other need no such division:
each of them walks a part of the operands. Each makes as much as the product does, so this pays where a loop around them
holds that in the scratchpads.

Decision: docs/decisions/0146-sums-in-parts.md
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Operation

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.hw.division import divisions, divisors
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.ops.native import pointwise
from spyre_mlir.transforms.utils.loops import footprints, loops_of


def parts_of_sum(op: kernel.KernelOp, spec: SpyreSpec) -> int:
    """Return the least number of parts of a product's sum that need no division of it; 1 where there is nothing to cut.

    Args:
        op: a divided kernel.
        spec: the machine.
    """
    if not isinstance(op, kernel.ComputeOp) or not op.is_product or op.is_watched or hint_of(op) is not None:
        return 1
    loops = loops_of(op)
    (summed,) = [lp for lp in loops if not lp.kept]
    operands, splits = footprints(op, loops), op.space_splits()
    if splits[summed.name] == 1:
        return 1
    cores = prod(splits.values())
    for parts in divisors(summed.units, summed.units):
        shorter = [replace(lp, units=lp.units // parts) if lp is summed else lp for lp in loops]
        if any(s[summed.name] == 1 for s in divisions(shorter, operands, cores, spec)):
            return parts
    return 1


def cut_sum(op: kernel.ComputeOp, parts: int) -> list[Operation]:
    """Return the kernels that compute a product in so many parts of its sum, with their buffers, in order.

    The last kernel writes the result.

    Args:
        op: the product, which stays as it is.
        parts: how many there are, two or more; they divide the pieces of the sum.
    """
    (summed,) = [lp.name for lp in loops_of(op) if not lp.kept]
    step, whole = op.padded_extents()[summed] // parts, op.space.extents[summed]
    made = _writing(_part(op, summed, 0, min(step, whole)))
    for number in range(1, parts):
        before, start = made[-1], number * step
        made += _writing(_part(op, summed, start, min(step, whole - start)))
        add = _sum(op, before, made[-1])
        made += [add] if number == parts - 1 else _writing(add)
    last = made[-1]
    if isinstance(last, kernel.ComputeOp):
        last.element = op.element
    return made


def _part(op: kernel.ComputeOp, loop: str, start: int, extent: int) -> kernel.ComputeOp:
    """The product over a part of its sum, which is rounded only when all parts are added up."""
    part = op.clone()
    part.element, part.location = None, op.location
    part.space = SpaceAttr(tuple(IterDim(d.name, extent if d.name == loop else d.extent) for d in op.space.data))
    part.maps = ArrayAttr([IndexMapAttr(tuple(_moved(e, loop, start) for e in m.data)) for m in op.maps.data])
    return part


def _sum(op: kernel.ComputeOp, left: Operation, right: Operation) -> kernel.ComputeOp:
    """The sum of what two kernels have written, written to the result of the product."""
    index = op.maps.data[-1]
    space = SpaceAttr(tuple(IterDim(d.name, d.extent) for d in op.space.data if d.name in index.names))
    inputs, function = [left.operands[-1], right.operands[-1]], StringAttr(str(pointwise.add.opfunc))
    add = kernel.ComputeOp(space, inputs, op.output, [index] * 3, {"function": function})
    add.attributes |= op.attributes
    add.narrowed, add.location = op.narrowed, op.location
    return add


def _writing(op: kernel.ComputeOp) -> list[Operation]:
    """A kernel that writes to a buffer of its own instead, behind the buffer."""
    buffer = kernel.AllocOp(DeviceTensorType(replace(kernel.device_tensor(op.output), space="hbm")))
    buffer.location = op.location
    op.operands[len(op.operands) - 1] = buffer.result
    return [buffer, op]


def _moved(expr: LinearExpr, loop: str, by: int) -> LinearExpr:
    return expr.shifted(sum(c for name, c in expr.terms if name == loop) * by)


__all__ = ["cut_sum", "parts_of_sum"]
