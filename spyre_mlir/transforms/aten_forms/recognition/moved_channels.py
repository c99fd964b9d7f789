"""Channels that slices, signs, concatenations and factors make: which channels of which tensor, and with which sign."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.ops.native import pointwise
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open

(NEG,) = pointwise.neg.overloads
ADD, SUB, MUL = "add.Tensor", "sub.Tensor", "mul.Tensor"
LAST = ("cat", "view")  # ops that end a turn
SELECT = "select.int"
MOVES = (*LAST, "stack", "slice.Tensor", SELECT, NEG, "unsqueeze", "squeeze.dims", "clone")


@dataclass(frozen=True)
class Term:
    """One channel of a tensor, with a sign and at most one factor.

    Attributes:
        channel: its number.
        negative: whether its sign is changed.
        table: the tensor that has the factor; None for a factor of 1.
        at: the place of the factor in the last dimension of the table.
    """

    channel: int
    negative: bool = False
    table: SSAValue | None = None
    at: int = 0


# The sum that each element is, behind leading dimensions.
Sums = NDArray[Any]


@dataclass
class Channels:
    """Elements that ops make of the channels of a tensor.

    Attributes:
        whole: the shape of this tensor.
        source: the tensor; None until one of this shape is found.
        factors: whether sums and factors are followed, or moves and signs alone.
    """

    whole: tuple[int, ...]
    source: SSAValue | None = None
    factors: bool = False
    _known: dict[SSAValue, Sums | None] = field(default_factory=dict[SSAValue, "Sums | None"])

    def of(self, value: SSAValue) -> Sums | None:
        """Return the terms of each element behind leading dimensions; None if a tensor is made of anything else."""
        if self.source is None and shape_of(value) == self.whole:
            self.source = value
        if value is self.source:
            return _elements([(Term(c),) for c in range(self.whole[-1])], self.whole[-1:])
        if value not in self._known:
            owner = value.owner
            self._known[value] = self.made_by(owner) if isinstance(owner, AtenOp) else None
        return self._known[value]

    def made_by(self, op: AtenOp) -> Sums | None:
        """Return the terms of each element of an op's result, as `of`."""
        lead = self.whole[:-1]
        if not is_open(op) or len(op.results) != 1 or not op.operands:
            return None
        if self.factors and op.overload in (ADD, SUB, MUL) and len(op.operands) == 2:
            return self._multiplied(op) if op.overload == MUL else self._added(op)
        shapes = [shape_of(v) for v in (*op.operands, op.results[0])]
        if op.overload not in MOVES or any(s[: len(lead)] != lead or len(s) == len(lead) for s in shapes):
            return None
        parts = list[Sums]()
        for operand in op.operands:
            if (part := self.of(operand)) is None:
                return None
            parts.append(part)
        return _moved(op, parts, len(lead))

    def _added(self, op: AtenOp) -> Sums | None:
        """A sum or difference of two numbers."""
        one, other = map(self.of, op.operands)
        if one is None or other is None or one.shape != other.shape or arguments_of(op)["alpha"] != 1:
            return None
        other = other if op.overload == ADD else _signed(other)
        pairs = zip(one.ravel(), other.ravel(), strict=True)
        return _elements([a + b for a, b in pairs], one.shape)

    def _multiplied(self, op: AtenOp) -> Sums | None:
        """A channel times a number of a table that all leading dimensions may share."""
        one, other = op.operands
        first, second = self.of(one), self.of(other)
        if (first is None) == (second is None):
            return None
        part, table = (second, one) if first is None else (first, other)
        if part is None or part.ndim != 1 or shape_of(table)[-1:] != part.shape:
            return None
        terms = [sum_[0] for sum_ in part if len(sum_) == 1 and sum_[0].table is None]
        if len(terms) < len(part):
            return None
        return _elements([(replace(term, table=table, at=n),) for n, term in enumerate(terms)], part.shape)


def turn_of(op: AtenOp) -> tuple[SSAValue, int] | None:
    """Return the tensor whose last dimension an op and those before it turn, and how far a channel goes.

    Of two channels that are so far apart the second one comes to the place of the first with its sign changed, and the
    first one to the place of the second. None if the result is something else.
    """
    shape = shape_of(op.results[0])
    if op.overload not in LAST or len(shape) < 2 or shape[-1] % 2:
        return None
    channels = Channels(shape)
    made = channels.made_by(op)
    if made is None or channels.source is None or made.shape != shape[-1:]:
        return None
    terms: list[Term] = [sum_[0] for sum_ in made]
    distance = terms[0].channel
    if distance < 1 or shape[-1] % (2 * distance):
        return None
    return (channels.source, distance) if all(turns(t, n, distance) for n, t in enumerate(terms)) else None


def turns(term: Term, place: int, distance: int) -> bool:
    """Return whether a channel comes to a place from so far away, with its sign changed if it comes from behind."""
    second = place // distance % 2 == 1
    return (term.channel, term.negative) == ((place - distance, False) if second else (place + distance, True))


def _moved(op: AtenOp, parts: list[Sums], rank: int) -> Sums | None:
    """What an op of `MOVES` makes of its operands' elements behind leading dimensions."""
    args = arguments_of(op)
    # The dimension of `unsqueeze` and `stack` is one of the result, that of `select` one of what it reads.
    counted = shape_of(op.operands[0] if op.overload == SELECT else op.results[0])
    behind = args["dim"] % len(counted) - rank if isinstance(args.get("dim"), int) else 0
    if behind < 0:
        return None
    match op.overload:
        case "cat":
            return np.concatenate(parts, behind)
        case "stack":
            return np.stack(parts, behind)
        case "slice.Tensor":
            return parts[0][(*(slice(None),) * behind, slice(args["start"], args["end"], args["step"]))]
        case name if name == SELECT:
            return np.take(parts[0], args["index"], behind) if isinstance(args["index"], int) else None
        case name if name == NEG:
            return _signed(parts[0])
        case _:
            return parts[0].reshape(shape_of(op.results[0])[rank:])


def _signed(sums: Sums) -> Sums:
    """The same with other signs."""
    changed = [tuple(replace(t, negative=not t.negative) for t in terms) for terms in sums.ravel()]
    return _elements(changed, sums.shape)


def _elements(sums: list[tuple[Term, ...]], shape: tuple[int, ...]) -> Sums:
    made = np.empty(len(sums), object)
    for place, terms in enumerate(sums):
        made[place] = terms
    return made.reshape(shape)


__all__ = ["ADD", "LAST", "MOVES", "MUL", "NEG", "SUB", "Channels", "Term", "turn_of", "turns"]
