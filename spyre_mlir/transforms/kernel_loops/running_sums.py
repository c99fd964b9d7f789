"""Sums over the rows of a group: a loop adds what each trip makes to a total, which may stay in the scratchpads.

So what is summed never exists as a whole. The total is 0 before the loop and is copied to the result behind it. Every
addition rounds to DLFloat16, which the sum does once; so few trips add to it, each the sum of its rows.

Decision: docs/decisions/0169-sums-that-grow-trip-by-trip.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, f64
from xdsl.ir import Block, SSAValue

from spyre_mlir.dialects.aten_arguments import TERMS
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.kernel_facts import fact
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.sticks import UNIT, LinearExpr, StickLayout
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.ops.native import pointwise, reductions
from spyre_mlir.transforms.utils.hints import hinted_place
from spyre_mlir.transforms.utils.kernels.loops import divided

# In which a sum grows: each addition may be wrong by half a unit in the last of DLFloat16's nine binary places.
MOST_TRIPS = 16


def most_trips(op: kernel.KernelOp, most: int) -> int:
    """Return in how many trips a sum may grow, of so many that a loop makes: adding a 0 does not round."""
    terms = op.attributes.get(TERMS)
    exact = isinstance(terms, IntegerAttr) and terms.value.data <= MOST_TRIPS
    return most if exact else min(most, MOST_TRIPS)


@fact
def summed_rows(op: kernel.KernelOp) -> tuple[str, int] | None:
    """Return the loop of a sum that can grow row by row, and the dimension of what it sums; None if it cannot."""
    if not isinstance(op, kernel.ComputeOp) or op.function_name != str(reductions.sum.opfunc):
        return None
    if op.is_watched or op.narrowed is not None or op.rounded is not None:
        return None
    source, result = op.tensors
    read, names = op.maps.data[0].data, op.maps.data[-1].names
    summed = [d for d in op.space.data if d.name not in names]
    if len(summed) != 1 or {source.format, result.format} != {DL16.name}:
        return None
    name, extent = summed[0].name, summed[0].extent
    dims = [dim for dim, expr in enumerate(read) if any(n == name for n, _ in expr.terms)]
    if len(dims) != 1 or read[dims[0]] != LinearExpr.of(name) or dims[0] == source.layout.stick:
        return None
    whole = extent == source.shape[dims[0]] and source.layout.unit_extent == result.layout.unit_extent == 1
    return (name, dims[0]) if whole else None


def may_grow(op: kernel.KernelOp) -> bool:
    """Return whether the program around a sum has room for a total: a place for its 0, and no hint about the sum."""
    program = op.parent_op()
    if not isinstance(program, func.FuncOp) or _is_region(program.body.block):
        return False
    alloc = op.output.owner
    return isinstance(alloc, kernel.AllocOp) and hint_of(op) is None and not hinted_place(op.output)


def _is_region(block: Block) -> bool:
    """Return whether a block is of a function that others call, which takes its constants from them."""
    return any(isinstance(argument.type, DeviceTensorType) for argument in block.args)


@dataclass(frozen=True)
class RunningSum:
    """The kernels around a loop that adds up a sum.

    Attributes:
        op: the sum.
        loop: its loop over what is summed.
        zero: the number 0.
        total: the sum so far.
        fill: writes 0 to the total.
        copy: writes the total to the result.
    """

    op: kernel.ComputeOp
    loop: str
    zero: kernel.KernelConstantOp
    total: kernel.AllocOp
    fill: kernel.ComputeOp
    copy: kernel.ComputeOp

    @staticmethod
    def of(op: kernel.ComputeOp, loop: str) -> RunningSum:
        """Make the kernels around a loop for a sum, which stays where it is."""
        layout, index = StickLayout.published((), UNIT, op.tensors[0].lanes), op.maps.data[-1]
        zero = kernel.KernelConstantOp(FloatAttr(0.0, f64), DeviceTensorType(DeviceTensor((), DL16.name, layout)))
        total = kernel.AllocOp(DeviceTensorType(replace(kernel.device_tensor(op.output), space="hbm")))
        for made in (zero, total):
            made.location = op.location
        fill = _pointwise(op, loop, COPY, [(zero.result, IndexMapAttr(()))], (total.result, index))
        copy = _pointwise(op, loop, COPY, [(total.result, index)], (op.output, index))
        copy.element = op.element
        return RunningSum(op, loop, zero, total, fill, copy)

    @property
    def around(self) -> tuple[kernel.ComputeOp, ...]:
        """The kernels before and behind the loop."""
        return self.fill, self.copy

    @property
    def value(self) -> SSAValue:
        """The total."""
        return self.total.result

    def divide_around(self) -> bool:
        """Divide the kernels around the loop as the addition is, so that they see its slices; return whether it is."""
        uses = (u.operation for u in self.value.uses if u.operation not in self.around)
        splits = next(op.space_splits() for op in uses if isinstance(op, kernel.KernelOp))
        for op in self.around:
            op.space = divided(op.space, splits)
        return prod(splits.values()) > 1

    def added(self, value: SSAValue, index: IndexMapAttr) -> kernel.ComputeOp:
        """Return the addition of what a trip makes, which a map finds in a value."""
        total, own = self.value, self.op.maps.data[-1]
        return _pointwise(self.op, self.loop, str(pointwise.add.opfunc), [(total, own), (value, index)], (total, own))

    def first_row(self) -> IndexMapAttr:
        """Return how the sum finds the only row that a trip has."""
        places = {name: LinearExpr() if name == self.loop else LinearExpr.of(name) for name in self.op.space.extents}
        return IndexMapAttr(tuple(expr.at(places) for expr in self.op.maps.data[0].data))

    def part(self, value: SSAValue, rows: int) -> tuple[kernel.AllocOp, kernel.ComputeOp]:
        """Return the sum of the rows that a trip has, with the buffer that it writes."""
        buffer = kernel.AllocOp(self.total.result.type)
        sum_ = self.op.clone()
        buffer.location = sum_.location = self.op.location
        sum_.operands, sum_.element = [value, buffer.result], None
        sum_.space = SpaceAttr(
            tuple(IterDim(d.name, rows if d.name == self.loop else d.extent) for d in self.op.space.data)
        )
        sum_.maps = ArrayAttr(self.op.maps.data)
        return buffer, sum_

    def drop(self) -> None:
        """Erase the kernels, once no loop has any of them."""
        for op in (self.copy, self.fill, self.total, self.zero):
            op.erase()


_Operand = tuple[SSAValue, IndexMapAttr]


def _pointwise(
    op: kernel.ComputeOp, loop: str, function: str, inputs: Sequence[_Operand], output: _Operand
) -> kernel.ComputeOp:
    """A function of the loops of a sum but the summed one."""
    space = SpaceAttr(tuple(IterDim(d.name, d.extent) for d in op.space.data if d.name != loop))
    maps = [index for _, index in (*inputs, output)]
    made = kernel.ComputeOp(space, [v for v, _ in inputs], output[0], maps, {"function": StringAttr(function)})
    made.attributes |= op.attributes
    made.location = op.location
    return made


__all__ = ["MOST_TRIPS", "RunningSum", "may_grow", "most_trips", "summed_rows"]
