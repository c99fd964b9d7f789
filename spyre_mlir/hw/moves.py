"""Moves: elements of a host tensor at other places, in a tensor of another shape.

Permutations, reshapes, slices and zeros around a tensor are all loops that read one place and write another. A program
whose weight needs them says so where it sends the weight, and the host rearranges it when it is laid out.

Decision: docs/decisions/0138-weights-are-rearranged-at-load.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from spyre_mlir.hw.few_bits import Words
from spyre_mlir.hw.sticks import IndexMap, LinearExpr

Array = NDArray[Any]


@dataclass(frozen=True)
class Move:
    """Loops that copy an element per point; what no point writes is 0.

    Attributes:
        loops: names and extents.
        source: the place that a point reads.
        target: the place that it writes.
        shape: extents of what is made.
    """

    loops: tuple[tuple[str, int], ...]
    source: IndexMap
    target: IndexMap
    shape: tuple[int, ...]

    @property
    def extents(self) -> dict[str, int]:
        """Extents by the names of loops."""
        return dict(self.loops)

    @property
    def views(self) -> bool:
        """Return whether every element of the result is one of the source: loops in another order, none folded."""
        return all(_walks(e, n, self.extents) for e, n in zip(self.target, self.shape, strict=True))

    @property
    def overwrites(self) -> bool:
        """Return whether two points may write the same place."""
        return not writes_once(self.target, self.extents)

    def apply(self, values: Array) -> Array:
        """Return the result: a view of the values if that is possible."""
        extents = self.extents
        if self.views:
            own = [e.terms[0][0] for e in self.target if e.terms]
            return map_view(values, self.source, extents, own).reshape(self.shape)
        made = np.zeros(self.shape, values.dtype)
        names = list(extents)
        map_view(made, self.target, extents, names)[...] = map_view(values, self.source, extents, names)
        return made


@dataclass(frozen=True)
class RowParts:
    """The last step of a transfer of indices: each names the parts of a row instead, which the table has side by side.

    Attributes:
        count: parts of a row; the result has them along a new first dimension.
    """

    count: int

    def shape(self, given: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extents of the result for a tensor of indices."""
        return self.count, *given

    def apply(self, values: Array) -> Array:
        """Return the numbers of parts; of truth values, those of the index for each part."""
        if values.dtype.kind == "b":
            return np.stack([values] * self.count)
        return np.stack([values.astype(np.int64) * self.count + part for part in range(self.count)])


HostStep = Move | Words | RowParts


def moved(values: Array, moves: Iterable[HostStep]) -> Array:
    """Return a host tensor after steps of a transfer, one after the other.

    Raises:
        IndexError: a move leaves the tensor.
        OverflowError: a number is no digit.
    """
    for move in moves:
        values = move.apply(values)
    return values


def writes_once(target: IndexMap, extents: Mapping[str, int]) -> bool:
    """Return whether every point of loops writes a place of its own, as far as the coefficients show it."""
    seen = set[str]()
    for expr in target:
        reach = 0
        for name, coefficient in sorted(expr.terms, key=lambda term: abs(term[1])):
            if abs(coefficient) <= reach:
                return False
            reach += abs(coefficient) * (extents[name] - 1)
            seen.add(name)
    return all(name in seen or extent == 1 for name, extent in extents.items())


def map_view(array: Array, index: IndexMap, extents: Mapping[str, int], names: Sequence[str]) -> Array:
    """Return the view of an array by an index map, one axis per name in `names`; unmentioned names repeat.

    Raises:
        IndexError: the map leaves the array, or uses a dimension that is not in `names`.
    """
    steps = dict.fromkeys(names, 0)
    for expr, extent, stride in zip(index, array.shape, array.strides, strict=True):
        if expr.first(extents) < 0 or expr.last(extents) >= extent:
            raise IndexError(f"index {expr} runs over {expr.first(extents)} to {expr.last(extents)} of {extent}")
        for name, coefficient in expr.terms:
            if name not in steps:
                raise IndexError(f"index {expr} uses {name}, which is none of {', '.join(names) or 'no dimensions'}")
            steps[name] += coefficient * stride
    start = array[(*(slice(expr.const, None) for expr in index), ...)]
    return as_strided(start, [extents[n] for n in names], [steps[n] for n in names])


def _walks(expr: LinearExpr, extent: int, extents: Mapping[str, int]) -> bool:
    """Whether an expression is one loop over a whole dimension, or stays at the only place of one."""
    if not expr.terms:
        return extent == 1
    return expr.const == 0 and len(expr.terms) == 1 and expr.terms[0][1] == 1 and extents[expr.terms[0][0]] == extent


__all__ = ["HostStep", "Move", "RowParts", "map_view", "moved", "writes_once"]
