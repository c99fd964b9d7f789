"""Axes of an operation: iteration dims, split wherever an operand's steps change.

An operand's elements along a dim may be sticks and lanes, or slices and elements. Cut alike for all operands, every
one of them is a strided view of memory, and nothing has to be copied before it is computed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

Array = npt.NDArray[Any]

# Elements that are worked on at a time: a few float32 arrays of so many stay in a core's second cache.
BLOCK = 1 << 16
# Steps of the axis above that are worked on together where an array steps less far along it: longer runs to read.
_TOGETHER = 8


@dataclass(frozen=True)
class StridedAxis:
    """``count`` steps of ``stride`` bytes."""

    count: int
    stride: int


class AccessCut(Protocol):
    """Axes and extents of an access, per dim."""

    @property
    def axes(self) -> tuple[tuple[StridedAxis, ...], ...]:
        """Axes per iteration dim, from the slowest to the fastest."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent per iteration dim."""
        ...

    @property
    def visible(self) -> tuple[int, ...]:
        """Extent per iteration dim that lies inside the buffer."""
        ...


@dataclass(frozen=True)
class Frame:
    """Axes per iteration dim, from the slowest to the fastest.

    Args:
        counts: steps of each.
        dense: whether operands are copied, one axis per dim, because no cut suits them all.
    """

    counts: tuple[tuple[int, ...], ...]
    dense: bool = False

    @staticmethod
    def of(accesses: Sequence[AccessCut]) -> Frame:
        """Return the coarsest frame in which every access is a strided view; a dense one if there is none."""
        counts = tuple(_cut(accesses, place) for place in range(len(accesses[0].shape)))
        if any(access.visible != access.shape for access in accesses) or not all(counts):
            return Frame.plain(accesses)
        return Frame(counts)

    @staticmethod
    def plain(accesses: Sequence[AccessCut]) -> Frame:
        """Return the frame with one axis per dim."""
        shapes = [access.shape for access in accesses]
        return Frame(tuple((max(sizes),) for sizes in zip(*shapes, strict=True)), dense=True)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Return the number of the first axis of each dim, and of all axes."""
        result = [0]
        for counts in self.counts:
            result.append(result[-1] + len(counts))
        return tuple(result)

    def axes_of(self, places: Sequence[int]) -> list[int]:
        """Return the axes of some dims."""
        return [axis for place in places for axis in range(self.starts[place], self.starts[place + 1])]

    def joined(self, values: Array) -> Array:
        """Reshape to one axis per dim."""
        return values.reshape([prod(values.shape[a:b]) for a, b in pairwise(self.starts)])

    def cut(self, values: Array) -> Array:
        """Reshape from one axis per dim to the frame's axes."""
        shape: list[int] = []
        for size, counts in zip(values.shape, self.counts, strict=True):
            shape.extend(counts if size != 1 else [1] * len(counts))
        return values.reshape(shape)


def _cut(accesses: Sequence[AccessCut], place: int) -> tuple[int, ...]:
    """Counts for one dim; none if there is no common cut."""
    full = max(access.shape[place] for access in accesses)
    cuts = {1, full}
    for access in accesses:
        if access.shape[place] not in (1, full):
            return ()
        inner = 1
        for axis in reversed(access.axes[place]):
            inner *= axis.count
            cuts.add(inner)
    cuts.discard(0)
    ordered = sorted(cuts, reverse=True)
    if any(outer % inner for outer, inner in pairwise(ordered)):
        return ()
    return tuple(outer // inner for outer, inner in pairwise(ordered)) or (1,)


def fine_axes(axes: Sequence[StridedAxis], counts: Sequence[int]) -> list[StridedAxis]:
    """Return the axes of one dim of an operand, split as in a frame; of size one in a dim it does not use."""
    if prod(axis.count for axis in axes) == 1:
        return [StridedAxis(1, 0)] * len(counts)
    result: list[StridedAxis] = []
    rest = [axis for axis in axes if axis.count != 1]
    axis = rest.pop()
    inner = 1
    for count in reversed(counts):
        result.append(StridedAxis(count, axis.stride * inner))
        inner *= count
        if inner == axis.count and rest:
            axis, inner = rest.pop(), 1
    return result[::-1]


def blocks(
    arrays: Sequence[Array], target: Array, *, along: Array | None = None
) -> Iterator[tuple[list[Array], Array]]:
    """Return parts of arrays of one shape, or broadcastable to the target's, small enough for the cache.

    Args:
        arrays: what is read.
        target: what is written.
        along: the array whose parts are to be runs of memory, of the target's shape; the target if not given.
    """
    if target.size <= BLOCK:
        yield list(arrays), target
        return
    wide = [*(np.broadcast_to(array, target.shape) for array in arrays), target]
    strides = (target if along is None else along).strides
    order = sorted((a for a in range(target.ndim) if target.shape[a] != 1), key=lambda a: -abs(strides[a]))
    shape = [target.shape[a] for a in order]
    steps = [[array.strides[a] for a in order] for array in wide]
    for at in range(len(shape) - 1, 0, -1):
        if all(step[at - 1] == step[at] * shape[at] for step in steps):
            shape[at - 1] *= shape.pop(at)
            for step in steps:
                del step[at - 1]
    flat = [as_strided(array, shape, step) for array, step in zip(wide, steps, strict=True)]
    at = next(a for a in range(len(shape)) if prod(shape[a + 1 :]) <= BLOCK)
    rows = max(1, BLOCK // prod(shape[at + 1 :]))
    across = 1
    if at and rows >= _TOGETHER and any(0 < abs(step[at - 1]) < abs(step[at]) for step in steps):
        across, rows = _TOGETHER, rows // _TOGETHER
    for place in product(*map(range, shape[: max(0, at - 1)]), range(0, shape[at - 1] if at else 1, across)):
        outer = (*place[:-1], slice(place[-1], place[-1] + across)) if at else ()
        for first in range(0, shape[at], rows):
            part = [array[(*outer, slice(first, first + rows))] for array in flat]
            yield part[:-1], part[-1]
