"""Products that only a divided sum brings within a core's reach, as products of parts of the sum that are added up.

A sum that is divided over cores keeps half of a core busy. Parts of the sum one after the other need no such division:
each of them walks a part of the operands. Each makes as much as the product does, so this pays where a loop around them
holds that in the scratchpads.

So may a weight of few bits that does not fit the scratchpads if only its columns are divided: parts of it do.

Decision: docs/decisions/0146-sums-in-parts.md
Decision: docs/decisions/0172-narrow-weights-in-blocks-and-parts.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.hw.division import divisions, divisors
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.ops.native import pointwise
from spyre_mlir.transforms.kernel_loops.row_groups import ops_from
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.utils.kernels.loops import footprints, loops_of
from spyre_mlir.transforms.utils.nests.nest_parts import moved

# Each part writes and adds a result of its own.
MOST_PARTS = 8


@dataclass
class PartedSum:
    """Products in whose place the kernels of their parts stand, until it is known whether they stay.

    Attributes:
        products: one, or those that share a weight; they are out of their block.
        parts: how many there are of each.
        made: kernels of the parts, and their buffers, in order.
        weight: the conversion of their weight, which is in parts as well, if it is.
    """

    products: Sequence[kernel.ComputeOp]
    parts: int
    made: list[Operation]
    weight: kernel.ConvertOp | None = None
    _places: list[tuple[SSAValue, Operation | None]] = field(
        init=False, default_factory=list[tuple[SSAValue, "Operation | None"]]
    )

    @classmethod
    def put(cls, products: Sequence[kernel.ComputeOp], parts: int, weight: kernel.ConvertOp | None = None) -> Self:
        """Put the kernels of so many parts in the place of products that stand side by side."""
        found = cls(products, parts, cut_sums(products, parts, weight), weight)
        _block(products[-1]).insert_ops_before(found.made, products[-1])
        for whole in found._wholes:
            found._places.append((whole.output, whole.next_op))
            whole.detach()
            whole.operands[len(whole.operands) - 1] = whole.operands[0]  # only the parts use the result now
        return found

    @property
    def kernels(self) -> list[kernel.KernelOp]:
        """The kernels of the parts."""
        return [op for op in self.made if isinstance(op, kernel.KernelOp)]

    @property
    def following(self) -> Operation | None:
        """The op behind them."""
        return self.made[-1].next_op

    def note(self, forms: KernelForms) -> None:
        """Note that the parts stand for the products."""
        wholes = [*([] if self.weight is None else [self.weight]), *self.products]
        forms.became(wholes, self._made, partial(_put_again, parts=self.parts))

    @property
    def _made(self) -> list[list[kernel.KernelOp]]:
        """By kernel, weight first, what stands in its place: all of it stands where the last product stood."""
        before = len(self.products) - (self.weight is None)
        return [*([] for _ in range(before)), self.kernels]

    def keep(self) -> None:
        """Drop the products."""
        for op in self.products:
            op.erase()
        if self.weight is not None:
            buffer = self._places[-1][0].owner
            self.weight.erase()
            if isinstance(buffer, kernel.AllocOp):
                Rewriter.erase_op(buffer)

    def undo(self) -> None:
        """Put the products back."""
        block = _block(self.made[0])
        for whole, (result, following) in zip(reversed(self._wholes), reversed(self._places), strict=True):
            whole.operands[len(whole.operands) - 1] = result
            if following is None:
                block.add_op(whole)
            else:
                block.insert_op_before(whole, following)
        for part in reversed(self.made):
            Rewriter.erase_op(part)

    @property
    def _wholes(self) -> list[kernel.KernelOp]:
        """All that is replaced, each before whatever stands behind it is."""
        return [*self.products, *([] if self.weight is None else [self.weight])]


def _put_again(ops: Sequence[kernel.KernelOp], parts: int) -> list[list[kernel.KernelOp]]:
    """Put the parts of the same products, perhaps behind their weight, in another copy."""
    weight = ops[0] if isinstance(ops[0], kernel.ConvertOp) else None
    parted = PartedSum.put([op for op in ops if isinstance(op, kernel.ComputeOp)], parts, weight)
    made = parted._made  # pyright: ignore[reportPrivateUsage]  # of this module
    parted.keep()
    return made


def products_of(weight: kernel.KernelOp) -> list[kernel.ComputeOp]:
    """Return the products that alone read what a conversion makes, each element of a weight where it lies.

    Empty if there is another reader, or if other kernels stand between the products.
    """
    if not isinstance(weight, kernel.ConvertOp) or weight.maps.data[0] != weight.maps.data[1]:
        return []
    users = [use for use in weight.output.uses if use.operation is not weight]
    found = [use.operation for use in users if isinstance(use.operation, kernel.ComputeOp) and use.index == 1]
    if len(found) < len(users) or not all(op.is_product and op.parent_op() is weight.parent_op() for op in found):
        return []
    indices = [*weight.maps.data[0].data, *(e for op in found for e in op.maps.data[1].data)]
    if not found or not all(len(e.terms) == 1 and e == LinearExpr.of(e.terms[0][0]) for e in indices):
        return []
    behind = [op for op in ops_from(weight.next_op) if isinstance(op, kernel.KernelOp)]
    ordered = sorted(found, key=behind.index)
    return ordered if behind.index(ordered[-1]) - behind.index(ordered[0]) < len(ordered) else []


def parts_of_weight(weight: kernel.ConvertOp, products: Sequence[kernel.ComputeOp], spec: SpyreSpec) -> int:
    """Return the least number of parts of a sum of which each has a weight that fits the scratchpads.

    All cores have columns of their own then; 1 where there is nothing to cut, or the parts would be too many.

    Args:
        weight: the conversion of the right operand.
        products: its only readers.
        spec: the machine.
    """
    if any(hint_of(op) is not None or op.is_watched for op in (weight, *products)):
        return 1
    loops = loops_of(products[0])
    (summed,) = [lp for lp in loops if not lp.kept]
    columns = products[0].maps.data[1].names - products[0].maps.data[0].names
    if prod(lp.units for lp in loops if lp.name in columns) % spec.cores_per_card:
        return 1
    held, *made = [_bytes(value) // spec.cores_per_card for value in (weight.output, *(op.output for op in products))]
    beside = sum(made) + max(made)
    return next((n for n in divisors(summed.units, MOST_PARTS) if held / n + beside <= spec.lx_usable_bytes), 1)


def _bytes(value: SSAValue) -> int:
    return kernel.device_tensor(value).sticks * STICK_BYTES


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


def cut_sums(
    products: Sequence[kernel.ComputeOp], parts: int, weight: kernel.ConvertOp | None = None
) -> list[Operation]:
    """Return the kernels that compute products in so many parts of their sums, with their buffers, in order.

    The last kernels write the results.

    Args:
        products: one, or those that share a weight; they stay as they are.
        parts: how many there are, two or more; they divide the pieces of the sum.
        weight: the conversion of the right operand; each part has one of its own.
    """
    made, sums = list[Operation](), dict[kernel.ComputeOp, kernel.ComputeOp]()
    for number in range(parts):
        wide: SSAValue | None = None
        for op in products:
            (summed,) = [lp.name for lp in loops_of(op) if not lp.kept]
            step, whole = op.padded_extents()[summed] // parts, op.space.extents[summed]
            start, extent = number * step, min(step, whole - number * step)
            if weight is not None and wide is None:
                dim = next(n for n, e in enumerate(op.maps.data[1].data) if e == LinearExpr.of(summed))
                made += (converting := _converting(weight, dim, start, extent))
                wide = converting[0].results[0]
            made += _writing(part := _part(op, summed, start, extent, wide))
            if (before := sums.get(op)) is not None:
                part = _sum(op, before, part)
                made += [part] if number == parts - 1 else _writing(part)
            sums[op] = part
    for op, last in sums.items():
        last.element = op.element
    return made


def _part(op: kernel.ComputeOp, loop: str, start: int, extent: int, wide: SSAValue | None) -> kernel.ComputeOp:
    """The product over a part of its sum, rounded only when all parts are added up; of a part of a weight, if any."""
    part = op.clone()
    part.element, part.location = None, op.location
    part.space = _shorter(op, loop, extent)
    left, right, result = (moved(index, loop, start) for index in op.maps.data)
    part.maps = ArrayAttr([left, right if wide is None else op.maps.data[1], result])
    if wide is not None:
        part.operands[1] = wide
    return part


def _converting(weight: kernel.ConvertOp, dim: int, start: int, extent: int) -> list[Operation]:
    """The conversion of a part of a weight, behind the part's buffer."""
    given, index = weight.maps.data
    loop = given.data[dim].terms[0][0]
    small = replace(kernel.device_tensor(weight.output).shorter(dim, extent), space="hbm")
    part, buffer = weight.clone(), kernel.AllocOp(DeviceTensorType(small))
    part.location = buffer.location = weight.location
    part.space = _shorter(weight, loop, extent)
    part.maps = ArrayAttr([moved(given, loop, start), index])
    part.operands[1] = buffer.result
    return [buffer, part]


def _shorter(op: kernel.KernelOp, loop: str, extent: int) -> SpaceAttr:
    return SpaceAttr(tuple(IterDim(d.name, extent if d.name == loop else d.extent) for d in op.space.data))


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


def _block(op: Operation) -> Block:
    block = op.parent_block()
    if block is None:
        raise ValueError("a kernel outside of a block")
    return block


__all__ = ["PartedSum", "cut_sums", "parts_of_sum", "parts_of_weight", "products_of"]
