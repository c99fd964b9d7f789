"""Layouts that follow one another: of ops that make and read a tensor with one stick dimension, without a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre.layout_choices import NO_LOOP, LayoutChoice
from spyre_mlir.dialects.spyre.loop import EmptyOp, NestOp
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.legality import stick_for
from spyre_mlir.transforms.loop_to_kernel.choose_lane import lane_of_result
from spyre_mlir.transforms.loop_to_kernel.layout_planner import block_of
from spyre_mlir.transforms.loop_to_kernel.moved_weights import fillers

_BLOCK = block_of(DL16.name)


@dataclass(frozen=True)
class Followers:
    """The ops of a region that may follow each other.

    Attributes:
        ops: of the region.
        open: numbers of those whose layouts are open, with the layouts that they may have.
    """

    ops: Sequence[Operation]
    open: Mapping[int, Sequence[LayoutChoice]]

    def of(self, number: int, choice: LayoutChoice) -> dict[int, LayoutChoice]:
        """Return the layouts of all ops that can follow that of one, and its own."""
        numbers = {self.ops[n]: n for n in self.open}
        found, queue = {number: choice}, [number]
        for at in queue:
            for value, stick in self._sticks(at, found[at]):
                for other in _beside(value, numbers):
                    if other not in found and (fits := self._fitting(other, value, stick)) is not None:
                        found[other] = fits
                        queue.append(other)
        return found

    def _sticks(self, number: int, choice: LayoutChoice) -> Iterator[tuple[SSAValue, int]]:
        """Tensors that an op makes and reads with a layout, with their stick dimensions."""
        op = self.ops[number]
        if isinstance(op, EmptyOp) and choice.stick is not None:
            chain = fillers(op.result)
            yield (chain[-1].result if chain else op.result), choice.stick
            for filler in chain:
                yield from _read(filler, lane_of_result(filler, choice.stick, _BLOCK))
        elif isinstance(op, NestOp):
            if choice.stick is not None:
                yield op.result, choice.stick
            yield from _read(op, None if choice.lanes == NO_LOOP else choice.lanes)

    def _fitting(self, number: int, value: SSAValue, stick: int) -> LayoutChoice | None:
        """The layout with which an op makes or reads a tensor with a stick dimension; None if there is none."""
        return next((c for c in self.open[number] if (value, stick) in self._sticks(number, c)), None)


def _beside(value: SSAValue, numbers: Mapping[Operation, int]) -> list[int]:
    """Open ops that make or read a tensor."""
    ops = [value.owner, *(use.operation for use in value.uses)]
    roots = [tensor_of(op) for op in ops if isinstance(op, Operation)]
    return [numbers[root] for root in roots if root in numbers]


def tensor_of(op: Operation) -> Operation:
    """Return the op that makes the tensor of a result: for a nest that fills a part of one, what it fills."""
    while isinstance(op, NestOp) and op.dest is not None and isinstance(op.dest.owner, Operation):
        op = op.dest.owner
    return op


def _read(op: NestOp, lane: str | None) -> Iterator[tuple[SSAValue, int]]:
    for value, index in zip(op.inputs, op.input_maps, strict=True):
        if (stick := stick_for(index.data, lane, _BLOCK)) is not None:
            yield value, stick


__all__ = ["Followers", "tensor_of"]
