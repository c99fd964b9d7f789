"""Slices, concatenations and relayouts for compositions.

A call that changes nothing builds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.value import Value


def part(b: Build, value: Value, dim: int, start: int, end: int, step: int = 1) -> Value:
    """A range of one dimension."""
    extent = value.shape[dim]
    if start == 0 and end >= extent and step == 1:
        return value
    return b.call("slice.Tensor", value, dim=dim % value.rank, start=start, end=end, step=step)


def taken(b: Build, value: Value, dim: int, start: int, count: int, step: int = 1) -> Value:
    """`count` elements of one dimension from `start` on, `step` apart."""
    return part(b, value, dim, start, start + step * (count - 1) + 1, step)


def cut_to(b: Build, value: Value, shape: Ints, but: int) -> Value:
    """A value cut to a shape in every dimension but one."""
    for dim, wanted in enumerate(shape):
        value = value if dim == but else part(b, value, dim, 0, wanted)
    return value


def joined(b: Build, parts: Sequence[Value], dim: int) -> Value:
    """Parts one after another along one dimension; those without elements are left out."""
    kept = [p for p in parts if p.shape[dim]] or parts[:1]
    return kept[0] if len(kept) == 1 else b.call("cat", list(kept), dim=dim)


def side_by_side(b: Build, parts: Sequence[Value], dim: int) -> Value:
    """Tensors along a new dimension."""
    return joined(b, [p.unsqueeze(dim) for p in parts], dim)


def padded(b: Build, value: Value, dim: int, before: int, after: int, number: float = 0.0) -> Value:
    """A value with a number before and behind one dimension; negative counts cut."""
    shape = value.shape
    at = dim % len(shape)

    def border(count: int) -> list[Value]:
        filled = (*shape[:at], count, *shape[at + 1 :])
        return [b.full((1,) * len(shape), number, value.element).expand(*filled)] if count > 0 else []

    kept = part(b, value, at, max(0, -before), shape[at] + min(0, after))
    return joined(b, [*border(before), kept, *border(after)], at)


def permuted(value: Value, order: Sequence[int]) -> Value:
    """A value with its dimensions in another order."""
    return value if list(order) == list(range(len(order))) else value.permute(*order)


def moved(value: Value, source: int, target: int) -> Value:
    """A value with one dimension in another place, the others in order."""
    order = list(range(value.rank))
    order.insert(target % len(order), order.pop(source % len(order)))
    return permuted(value, order)


def reshaped(value: Value, shape: Ints) -> Value:
    """A value under another shape of as many elements."""
    return value if value.shape == tuple(shape) else value.view(*shape)


def widened(value: Value, shape: Ints) -> Value:
    """A value repeated up to a shape."""
    return value if value.shape == tuple(shape) else value.expand(*shape)


def along(vector: Value, rank: int, dim: int) -> Value:
    """A vector that runs along one dimension of a tensor of `rank`, and broadcasts over the others."""
    return reshaped(vector, (*vector.shape, *(1,) * (rank - dim % rank - 1)))
