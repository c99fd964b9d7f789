"""Rotary positions that a model writes on parts of heads: on halves by themselves, or on some channels alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.transforms.aten_forms.recognition.moved_channels import (
    ADD,
    LAST,
    MOVES,
    MUL,
    SUB,
    Channels,
    Term,
    turns,
)

# Ops between heads and what a model makes of them, at most: the longest form known has 14.
_MOST_OPS = 32
# A factor's table and its place there; None for a channel that stays.
Factor = tuple[SSAValue, int] | None


@dataclass(frozen=True)
class Rotation:
    """Channels times factors, plus channels from a distance times other factors.

    Attributes:
        heads: the tensor with the channels in its last dimension.
        distance: how far channels go that are added, as `moved_channels.turn_of` has it.
        apart: whether every other channel goes before the rest first.
        own: by channel, the factor of itself; None for 1.
        turned: by channel, the factor of what comes from so far away; None for 0.
    """

    heads: SSAValue
    distance: int
    apart: bool
    own: tuple[Factor, ...]
    turned: tuple[Factor, ...]

    @property
    def within_sticks(self) -> bool:
        """Return whether parts that a model computes by themselves are no whole sticks."""
        lanes = DL16.elements_per_stick()
        stays = [factor is None for factor in self.own]
        if any(stays):
            return any(n % lanes != 0 for n in range(1, len(stays)) if stays[n] != stays[n - 1])
        return self.apart or self.distance % lanes != 0


def rotation_of(op: AtenOp) -> Rotation | None:
    """Return the rotation that an op ends, with the heads that it rotates; None if it makes anything else."""
    shape = shape_of(op.results[0])
    if op.overload not in LAST or len(shape) < 2 or not shape[-1]:
        return None
    for heads in _whole(op, shape):
        made = Channels(shape, heads, factors=True).made_by(op)
        if made is None or made.shape != shape[-1:]:
            continue
        for apart in (False, True):
            if (found := _rotation(heads, made.tolist(), apart)) is not None:
                return found
    return None


def _whole(op: AtenOp, shape: tuple[int, ...]) -> Iterator[SSAValue]:
    """Tensors of a shape before an op, with nothing between but what a rotation may have."""
    waiting, seen = [op], set[SSAValue]()
    while waiting and len(seen) < _MOST_OPS:
        reader = waiting.pop(0)
        for value in reader.operands:
            if value in seen:
                continue
            seen.add(value)
            if shape_of(value) == shape:
                yield value
            owner = value.owner
            if isinstance(owner, AtenOp) and owner.overload in (ADD, SUB, MUL, *MOVES):
                waiting.append(owner)


def _rotation(heads: SSAValue, sums: Sequence[tuple[Term, ...]], apart: bool) -> Rotation | None:
    """The rotation that makes these sums of channels, after every other one went before the rest if `apart`."""
    count = len(sums)
    order = [*range(0, count, 2), *range(1, count, 2)] if apart else [*range(count)]
    place = {channel: n for n, channel in enumerate(order)}
    own, turned, distance = list[Factor](), list[Factor](), 0
    for n, terms in enumerate(sums):
        moved = [Term(place[t.channel], t.negative, t.table, t.at) for t in terms]
        if moved == [Term(n)]:
            own.append(None)
            turned.append(None)
            continue
        here = [t for t in moved if t.channel == n and not t.negative and t.table is not None]
        there = [t for t in moved if t not in here and t.table is not None]
        if len(moved) != 2 or len(here) != 1 or len(there) != 1:
            return None
        distance = distance or abs(there[0].channel - n)
        if distance == 0 or not turns(there[0], n, distance):
            return None
        own.append(_factor(here[0]))
        turned.append(_factor(there[0]))
    return Rotation(heads, distance, apart, tuple(own), tuple(turned)) if distance else None


def _factor(term: Term) -> Factor:
    return None if term.table is None else (term.table, term.at)


__all__ = ["Factor", "Rotation", "rotation_of"]
