"""Layouts that the text of a program says: followed where they are legal, refused elsewhere.

Decision: docs/decisions/0175-layouts-are-said-in-the-text.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Attribute, Operation, Use

from spyre_mlir.dialects.spyre.layout_choices import (
    NO_LOOP,
    LayoutChoice,
    LayoutError,
    layout_said,
    listed,
)
from spyre_mlir.dialects.spyre.loop import LoopGatherOp
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel

# The loop in the lanes, and the stick dimension of the result.
Lane = tuple[str | None, int]


@dataclass
class ChosenLayouts:
    """Layouts that ops have chosen, or taken from the text.

    Attributes:
        lanes: loops in the lanes, by op.
        made: buffers of results whose layouts were theirs to choose, by op.
        split: parts of nests, which stand before them, and the nests; see `split_write`.
        hinted: ops whose layouts hints ask for.
        tried: ops whose layouts trials have found, by price.
        note: what is noted at the kernel of a step, if anything is; see `layout_reasons`.
    """

    lanes: dict[Operation, str | None] = field(default_factory=dict[Operation, "str | None"])
    made: dict[Operation, PlannedBuffer] = field(default_factory=dict[Operation, PlannedBuffer])
    split: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    hinted: Collection[Operation] = ()
    tried: Collection[Operation] = ()
    note: Callable[[PlannedKernel], Attribute | None] = lambda _: None

    def choices(self) -> dict[Operation, LayoutChoice]:
        """Return all of them, by the ops that make the tensors."""
        found = dict[Operation, LayoutChoice]()
        for op, buffer in self.made.items():
            lanes = (self.lanes[op] or NO_LOOP) if op in self.lanes else ""
            if op in self.split:  # a part of it that writes a tensor of its own
                found[self.split[op]] = LayoutChoice(lanes)
            else:
                found[op] = LayoutChoice.of(buffer.layout, lanes)
        return found

    def __contains__(self, op: Operation) -> bool:
        """Return whether an op has a layout."""
        return op in self.lanes or op in self.made


def lane_choice(lane: Lane) -> LayoutChoice:
    """Return a loop in the lanes and a stick dimension as what may be said."""
    return LayoutChoice(NO_LOOP if lane[0] is None else lane[0], lane[1])


def allowed_lanes(op: Operation, legal: Sequence[Lane], why: str = "") -> list[Lane]:
    """Return those of the legal lanes of an op that agree with what its text says.

    Args:
        op: the op.
        legal: loops that may be in the lanes, with the stick dimensions of the result.
        why: why there are no others, for the message.

    Raises:
        LayoutError: none agrees.
    """
    said = layout_said(op)
    if said is None:
        return list(legal)
    fits = [lane for lane in legal if agrees(said, lane)]
    if not fits:
        raise LayoutError(
            f"the layout of the result cannot be {LayoutChoice(said.lanes, said.stick)}{why and f': {why}'}",
            hint=f"legal are {listed([lane_choice(lane) for lane in legal])}",
        )
    return fits


def allowed_sticks(op: Operation, legal: Sequence[int]) -> list[int]:
    """Return those of the legal stick dimensions of a tensor without loops that agree with what its text says.

    Raises:
        LayoutError: none agrees, or a loop is named.
    """
    said = layout_said(op)
    if said is not None and said.lanes:
        raise LayoutError(f"{op.name} has no loops, got lanes {said.lanes}", hint="say stick and order alone")
    if said is None or said.stick is None:
        return list(legal)
    if said.stick not in legal:
        raise LayoutError(
            f"the layout cannot be {LayoutChoice(stick=said.stick)}: not everything that is written there could be",
            hint=f"legal are {listed([LayoutChoice(stick=stick) for stick in legal])}",
        )
    return [said.stick]


def put_in_order(op: Operation, buffer: PlannedBuffer) -> PlannedBuffer:
    """Order the dimensions of the buffer of an op's result as its text says; return the buffer.

    Where the text says nothing, the rows of a table from which a gather takes some are outermost.

    Raises:
        LayoutError: the order does not list every dimension once.
    """
    said = layout_said(op)
    if said is not None and said.order:
        buffer.layout, buffer.ordered = said.in_order(buffer.layout), True
    elif buffer.layout.stick != UNIT and any(_is_table(use) for result in op.results for use in result.uses):
        stick = buffer.layout.stick
        outer = (dim for dim in range(len(buffer.shape)) if dim != stick)
        buffer.layout = replace(buffer.layout, order=(*outer, stick))
    return buffer


def _is_table(use: Use) -> bool:
    return isinstance(use.operation, LoopGatherOp) and use.operation.table is use.operation.operands[use.index]


def check_said(op: Operation, lane: Lane, order: Sequence[int], why: str) -> None:
    """Check what is said of an op whose result lies as another tensor does.

    Raises:
        LayoutError: it lies otherwise.
    """
    allowed_lanes(op, [lane], why)
    said, found = layout_said(op), tuple(order)
    if said is not None and said.order and said.order != found:
        raise LayoutError(
            f"the layout of the result cannot be {LayoutChoice(order=said.order)}: {why}",
            hint=f"it is {LayoutChoice(order=found)}",
        )


def agrees(said: LayoutChoice, lane: Lane) -> bool:
    """Return whether a loop in the lanes, with a stick dimension, is as it is said."""
    legal = lane_choice(lane)
    return said.lanes in ("", legal.lanes) and said.stick in (None, legal.stick)


__all__ = [
    "ChosenLayouts",
    "Lane",
    "agrees",
    "allowed_lanes",
    "allowed_sticks",
    "check_said",
    "lane_choice",
    "put_in_order",
]
