"""Sums along rows in two steps: each core sums the columns that it has, and a short kernel adds those sums up.

A sum of whole rows needs them on one core, and a product divides its columns over cores. What is summed would then go
through device memory, and so would all that is read both by rows and by columns. The sums of parts of the rows are
a stick for each row and part.

Decision: docs/decisions/0180-sums-of-columns-that-cores-share.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.hw.cost_parameters import SHORTEST_MEASURED_US
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import UNIT, LinearExpr
from spyre_mlir.ops.native import reductions
from spyre_mlir.planning.divisions import WIDTH, Division, divide_within
from spyre_mlir.transforms.kernel_plans.divided_blocks import kernels_in
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.utils.hints import hinted_place
from spyre_mlir.transforms.utils.kernels.launches import launch_numbers

# A product of 32 cores divides columns so if no load is to serve more than 8 of them.
PARTS = (4, 8)
# Kernels before a sum, and behind it, that are priced with it.
MOST_KERNELS = 40


def slice_sums(block: Block, choices: KernelChoices, forms: KernelForms) -> None:
    """Put sums in two steps where the kernels around them, outside of loops, gain clearly by it.

    Args:
        block: of divided kernels.
        choices: their divisions.
        forms: is told which sums are in two steps.
    """
    for op in kernels_in(block):
        if op in choices.fixed or not isinstance(op, kernel.ComputeOp) or (loop := summed_columns(op)) is None:
            continue
        cuts = [parts for parts in PARTS if op.space.extents[loop] % (parts * op.tensors[0].lanes) == 0]
        tensors = _tensors_behind(op)
        if not cuts or _memory_us(tensors, choices) < SHORTEST_MEASURED_US or not _fits(op.operands[0], choices):
            continue
        before = _priced(block, op, tensors, choices)
        if before is None or not _leaves_scratchpads(before, tensors):
            continue
        most_us = before.division.us - SHORTEST_MEASURED_US
        # More parts are for products that have to divide their columns over as many cores.
        best = next((parts for parts in cuts if _takes_at_most(most_us, op, loop, parts, tensors, choices)), None)
        if best is not None:
            kept = SlicedSum.put(op, loop, best)
            for made in kept.kernels:
                choices.divide(made)
            forms.became([op], [kept.kernels], partial(_slice_again, loop=loop, parts=best))
            kept.keep()
            choices.moved()


def _takes_at_most(
    most_us: float, op: kernel.ComputeOp, loop: str, parts: int, tensors: Iterable[SSAValue], choices: KernelChoices
) -> bool:
    """Whether a sum in two steps, and the kernels around it, take at most so long; the sum is as before."""
    block = op.parent_block()
    assert block is not None
    tried = SlicedSum.put(op, loop, parts)
    for made in tried.kernels:
        choices.divide(made)
    found = _priced(block, tried.kernels[0], tensors, choices, most_us)
    tried.undo()
    return found is not None


def _slice_again(ops: Sequence[kernel.KernelOp], loop: str, parts: int) -> list[list[kernel.KernelOp]]:
    (op,) = ops
    assert isinstance(op, kernel.ComputeOp)
    kept = SlicedSum.put(op, loop, parts)
    kept.keep()
    return [kept.kernels]


def summed_columns(op: kernel.ComputeOp) -> str | None:
    """Return the loop over the columns of a sum along rows that may be in two steps; None if it may not."""
    if op.function_name != str(reductions.sum.opfunc) or op.is_watched or hint_of(op) is not None:
        return None
    if op.narrowed is not None or op.rounded is not None or any(hinted_place(value) for value in op.operands):
        return None
    source, result = op.tensors
    read, stick = op.maps.data[0].data, source.layout.stick
    if {source.format, result.format} != {DL16.name} or source.layout.unit_extent != 1 or stick in (None, UNIT):
        return None
    summed = [d for d in op.space.data if d.name not in op.maps.data[-1].names]
    if len(summed) != 1 or result.layout.stick != UNIT or result.layout.unit_extent != 1:
        return None
    name = summed[0].name
    walked = [d for d, e in enumerate(read) if any(n == name for n, _ in e.terms)]
    alone = walked == [stick] and read[walked[0]] == LinearExpr.of(name)
    # The sums of parts have the dimensions of what is summed, each walked by a loop of its own.
    whole = all(
        e == LinearExpr() or (len(e.terms) == 1 and e == LinearExpr.of(e.terms[0][0]))
        for e in read[: len(source.shape)]
    )
    return name if alone and whole else None


@dataclass
class SlicedSum:
    """A sum in two steps, in whose place they stand until it is known whether they stay.

    Attributes:
        op: the sum, which is out of its block.
        made: the buffer of the sums of parts, their kernel, and the kernel that adds them up.
    """

    op: kernel.ComputeOp
    made: Sequence[Operation]
    _operands: tuple[SSAValue, ...]
    _aside: list[Operation] = field(default_factory=list[Operation])

    @staticmethod
    def put(op: kernel.ComputeOp, loop: str, parts: int) -> SlicedSum:
        """Put both steps in the place of a sum.

        Args:
            op: the sum.
            loop: its loop over columns.
            parts: into how many equal parts that is cut, each of whole sticks.
        """
        found = SlicedSum(op, _steps(op, loop, parts), tuple(op.operands))
        block = op.parent_block()
        assert block is not None
        block.insert_ops_before(list(found.made), op)
        op.detach()
        for number, value in enumerate(found._operands):  # no buffer is to have a reader outside of the block
            found._aside.append(aside := kernel.AllocOp(value.type))
            op.operands[number] = aside.result
        return found

    @property
    def kernels(self) -> list[kernel.KernelOp]:
        """The two steps."""
        return [op for op in self.made if isinstance(op, kernel.KernelOp)]

    def keep(self) -> None:
        """Drop the sum."""
        self.op.erase()

    def undo(self) -> None:
        """Put the sum back."""
        for number, value in enumerate(self._operands):
            self.op.operands[number] = value
        block = self.made[-1].parent_block()
        assert block is not None
        block.insert_op_before(self.op, self.made[0])
        for made in reversed(self.made):
            Rewriter.erase_op(made)


def _steps(op: kernel.ComputeOp, loop: str, parts: int) -> list[Operation]:
    source, result = op.tensors
    read, written = op.maps.data
    stick, columns = source.layout.stick, op.space.extents[loop] // parts
    assert stick is not None
    order = [
        d for dim in source.layout.order for d in ((dim, UNIT) if dim == stick else (dim,)) if d != UNIT or dim == stick
    ]
    extents = tuple(parts if d == stick else e for d, e in enumerate(source.layout.extents))
    layout = replace(source.layout, order=tuple(order), stick=UNIT, extents=extents)
    shape = tuple(parts if d == stick else e for d, e in enumerate(source.shape))
    buffer = kernel.AllocOp(DeviceTensorType(replace(result, shape=shape, layout=layout, space="hbm")))
    part = f"{loop}_part"

    def along(name: str) -> IndexMapAttr:
        return IndexMapAttr(tuple(LinearExpr.of(name) if d == stick else e for d, e in enumerate(read.data)))

    def step(space: Iterable[tuple[str, int]], maps: Sequence[IndexMapAttr], operands: Sequence[SSAValue]) -> Operation:
        made = op.clone()
        made.space = SpaceAttr(tuple(IterDim(name, extent) for name, extent in space))
        made.maps = ArrayAttr(maps)
        for number, value in enumerate(operands):
            made.operands[number] = value
        return made

    dims = [(d.name, d.extent) for d in op.space.data]
    cut = [
        pair
        for name, extent in dims
        for pair in (((part, parts), (name, columns)) if name == loop else ((name, extent),))
    ]
    inside = LinearExpr(0, ((part, columns), (loop, 1)))
    places = IndexMapAttr(tuple(inside if d == stick else e for d, e in enumerate(read.data)))
    first = step(cut, [places, along(part)], [op.operands[0], buffer.result])
    assert isinstance(first, kernel.ComputeOp)
    first.element = None  # exact numerics round a sum once
    short = [(name, parts if name == loop else extent) for name, extent in dims]
    second = step(short, [along(loop), written], [buffer.result, op.output])
    for made in (buffer, first, second):
        made.location = op.location
    return [buffer, first, second]


def _tensors_behind(op: kernel.KernelOp) -> set[SSAValue]:
    """What is summed, and the tensors of as many elements that it is computed from element by element."""
    found, sticks = set[SSAValue](), op.tensors[0].sticks
    todo = [op.operands[0]]
    while todo:
        value = todo.pop()
        if value in found or kernel.device_tensor(value).sticks != sticks:
            continue
        found.add(value)
        for writer in _writers(value):
            if not writer.is_product and not set(writer.space.extents) - writer.maps.data[-1].names:
                todo += writer.inputs
    return found


def _memory_us(tensors: Iterable[SSAValue], choices: KernelChoices) -> float:
    """The time that tensors take if all kernels have them in device memory, more than their place may cost."""
    sticks = sum(
        kernel.device_tensor(value).sticks * sum(isinstance(use.operation, kernel.KernelOp) for use in value.uses)
        for value in tensors
    )
    return choices.parameters.memory_us(sticks * STICK_BYTES)


def _fits(value: SSAValue, choices: KernelChoices) -> bool:
    """Whether the scratchpads of all cores together have room for a tensor."""
    room = choices.spec.lx_usable_bytes * choices.spec.cores_per_card
    return kernel.device_tensor(value).sticks * STICK_BYTES <= room


def _writers(value: SSAValue) -> list[kernel.KernelOp]:
    users = [use.operation for use in value.uses]
    return [op for op in users if isinstance(op, kernel.KernelOp) and op.output is value]


@dataclass(frozen=True)
class _Priced:
    """The quickest division of the kernels around a sum."""

    ops: Sequence[kernel.KernelOp]
    division: Division


def _priced(
    block: Block, op: kernel.KernelOp, tensors: Iterable[SSAValue], choices: KernelChoices, most_us: float = inf
) -> _Priced | None:
    """The kernels around a sum that may use some tensors, and their division; None if none is within a time."""
    ops = kernels_in(block)
    using = {use.operation for value in tensors for use in value.uses} | {op}
    numbers = [number for number, other in enumerate(ops) if other in using]
    at = ops.index(op)
    ops = ops[max(numbers[0], at - MOST_KERNELS) : min(numbers[-1], at + MOST_KERNELS) + 1]
    sequence, _ = choices.sequence(ops, launch_numbers(block))
    division = divide_within(sequence, most_us, choices.prices, WIDTH)
    return None if division is None else _Priced(ops, division)


def _leaves_scratchpads(priced: _Priced, tensors: set[SSAValue]) -> bool:
    """Whether a kernel has one of these tensors in device memory."""
    return any(
        value in tensors and number not in held
        for op, held in zip(priced.ops, priced.division.held, strict=True)
        for number, value in enumerate(op.operands)
    )


__all__ = ["SlicedSum", "slice_sums", "summed_columns"]
