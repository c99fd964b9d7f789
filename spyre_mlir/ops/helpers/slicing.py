"""What compositions do with shapes: parts cut out of dimensions, put side by side, and laid out anew.

Nothing is built where nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import Build


def part(b: Build, value: Any, dim: int, start: int, end: int, step: int = 1) -> Any:
    """A range of one dimension."""
    extent = b.shape(value)[dim]
    if start == 0 and end >= extent and step == 1:
        return value
    return b.call("slice.Tensor", value, dim=dim % len(b.shape(value)), start=start, end=end, step=step)


def taken(b: Build, value: Any, dim: int, start: int, count: int, step: int = 1) -> Any:
    """`count` elements of one dimension from `start` on, `step` apart."""
    return part(b, value, dim, start, start + step * (count - 1) + 1, step)


def cut_to(b: Build, value: Any, shape: Ints, but: int) -> Any:
    """A value cut to a shape in every dimension but one."""
    for dim, wanted in enumerate(shape):
        value = value if dim == but else part(b, value, dim, 0, wanted)
    return value


def joined(b: Build, parts: Sequence[Any], dim: int) -> Any:
    """Parts one after another along one dimension; those without elements are left out."""
    kept = [p for p in parts if b.shape(p)[dim]] or parts[:1]
    return kept[0] if len(kept) == 1 else b.call("cat", list(kept), dim=dim)


def side_by_side(b: Build, parts: Sequence[Any], dim: int) -> Any:
    """Tensors along a new dimension."""
    return joined(b, [b.call("unsqueeze", p, dim=dim) for p in parts], dim)


def padded(b: Build, value: Any, dim: int, before: int, after: int, number: float = 0.0) -> Any:
    """A value with a number before and behind one dimension; negative counts cut."""
    shape = b.shape(value)
    at = dim % len(shape)

    def border(count: int) -> list[Any]:
        return [b.full((*shape[:at], count, *shape[at + 1 :]), number, b.element(value))] if count > 0 else []

    kept = part(b, value, at, max(0, -before), shape[at] + min(0, after))
    return joined(b, [*border(before), kept, *border(after)], at)


def permuted(b: Build, value: Any, order: Sequence[int]) -> Any:
    """A value with its dimensions in another order."""
    return value if list(order) == list(range(len(order))) else b.call("permute", value, dims=tuple(order))


def moved(b: Build, value: Any, source: int, target: int) -> Any:
    """A value with one dimension in another place, the others in order."""
    order = list(range(len(b.shape(value))))
    order.insert(target % len(order), order.pop(source % len(order)))
    return permuted(b, value, order)


def reshaped(b: Build, value: Any, shape: Ints) -> Any:
    """A value under another shape of as many elements."""
    return value if b.shape(value) == tuple(shape) else b.call("view", value, size=tuple(shape))


def widened(b: Build, value: Any, shape: Ints) -> Any:
    """A value repeated up to a shape."""
    return value if b.shape(value) == tuple(shape) else b.call("expand", value, size=tuple(shape))


def along(b: Build, vector: Any, rank: int, dim: int) -> Any:
    """A vector that runs along one dimension of a tensor of `rank`, and broadcasts over the others."""
    return reshaped(b, vector, (*b.shape(vector), *(1,) * (rank - dim % rank - 1)))
