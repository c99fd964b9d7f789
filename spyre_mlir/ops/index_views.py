"""Views as index functions: reshape, permute, slice and expand on plain integers, no data, no IR.

Decision: docs/decisions/0223-axes-that-walk-as-one-are-one.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

AxisIndex = int  # identity of an independent index; its extent lives in `IndexView.extents`


class NotAView(ValueError):
    """The elements asked for are no affine reading of the base tensor: a copy is needed."""


@dataclass(frozen=True)
class IndexView:
    """Which element of a base tensor each element of a view is.

    A view dimension is a list of axes, outermost first; an empty list has extent 1. The index into
    base dimension ``j`` is ``offsets[j]`` plus the sum of coefficient * axis over ``terms[j]``.

    Attributes:
        base: shape of the base tensor.
        dims: axes of every view dimension.
        terms: per base dimension, (axis, coefficient) pairs.
        offsets: per base dimension, the constant part.
        extents: extent of every axis, by axis number.
    """

    base: tuple[int, ...]
    dims: tuple[tuple[AxisIndex, ...], ...]
    terms: tuple[tuple[tuple[AxisIndex, int], ...], ...]
    offsets: tuple[int, ...]
    extents: tuple[int, ...]

    @staticmethod
    def identity(shape: tuple[int, ...]) -> IndexView:
        """The view that reads a tensor of `shape` as it is."""
        extents = tuple(e for e in shape if e != 1)
        axes = iter(range(len(extents)))
        dims = tuple(() if e == 1 else (next(axes),) for e in shape)
        terms = tuple(tuple((a, 1) for a in d) for d in dims)
        return IndexView(shape, dims, terms, (0,) * len(shape), extents)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the view."""
        return tuple(prod(self.extents[a] for a in d) for d in self.dims)

    @property
    def repeats(self) -> bool:
        """Return whether several elements of the view are the same element of the base, by `expand`."""
        used = {a for row in self.terms for a, _ in row}
        return any(a not in used for axes in self.dims for a in axes)

    @property
    def is_identity(self) -> bool:
        """Return whether the view is the base tensor: its shape, and every element at its own place."""
        if any(self.offsets) or self.shape != self.base:
            return False
        for axes, row in zip(self.dims, self.terms, strict=True):
            inner, steps = 1, dict[AxisIndex, int]()
            for axis in reversed(axes):
                steps[axis] = inner
                inner *= self.extents[axis]
            if dict(row) != steps:
                return False
        return True

    @property
    def nests(self) -> bool:
        """Return whether the steps through every base dimension divide one another, as all walks through sticks do."""
        for row in self.terms:
            steps = sorted((abs(c) for a, c in row if c and self.extents[a] > 1), reverse=True)
            if any(outer % inner for outer, inner in pairwise(steps)):
                return False
        return True

    def _dim(self, dim: int, extra: int = 0) -> int:
        rank = len(self.dims) + extra
        if not -rank <= dim < rank:
            raise IndexError(f"dimension {dim} of a tensor of rank {rank}")
        return dim % rank

    def permute(self, dims: tuple[int, ...]) -> IndexView:
        """Reorders the dimensions.

        Raises:
            IndexError: the numbers are no permutation of the dimensions.
        """
        order = [self._dim(d) for d in dims]
        if sorted(order) != list(range(len(self.dims))):
            raise IndexError(f"permutation {dims} of a tensor of rank {len(self.dims)}")
        return replace(self, dims=tuple(self.dims[d] for d in order))

    def transpose(self, dim0: int, dim1: int) -> IndexView:
        """Exchanges two dimensions."""
        order = list(range(len(self.dims)))
        a, b = (self._dim(dim0), self._dim(dim1)) if order else (0, 0)
        if order:
            order[a], order[b] = order[b], order[a]
        return self.permute(tuple(order))

    def unsqueeze(self, dim: int) -> IndexView:
        """Inserts a dimension of extent 1."""
        at = self._dim(dim, extra=1)
        return replace(self, dims=(*self.dims[:at], (), *self.dims[at:]))

    def squeeze(self, dims: tuple[int, ...] | None = None) -> IndexView:
        """Drops the dimensions of extent 1 among `dims` (all by default)."""
        # A tensor of no dimensions has none to drop, and torch names its dimension 0 all the same.
        chosen = range(len(self.dims)) if dims is None or not self.dims else {self._dim(d) for d in dims}
        return replace(self, dims=tuple(d for i, d in enumerate(self.dims) if not (i in chosen and not d)))

    def expand(self, shape: tuple[int, ...]) -> IndexView:
        """Repeats dimensions of extent 1; -1 keeps an extent; new dimensions come in front.

        Raises:
            IndexError: the shape has fewer dimensions, or another extent where there is more than one element.
        """
        if len(shape) < len(self.dims):
            raise IndexError(f"expand to {shape} of a tensor of rank {len(self.dims)}")
        dims: tuple[tuple[AxisIndex, ...], ...] = ((),) * (len(shape) - len(self.dims)) + self.dims
        extents, out = list(self.extents), list[tuple[AxisIndex, ...]]()
        for target, axes in zip(shape, dims, strict=True):
            extent = prod(extents[a] for a in axes)
            if target in (-1, extent):
                out.append(axes)
            elif extent == 1:
                out.append((len(extents),))
                extents.append(target)
            else:
                raise IndexError(f"expand of an extent {extent} to {target}")
        return replace(self, dims=tuple(out), extents=tuple(extents))

    def select(self, dim: int, index: int) -> IndexView:
        """Fixes one dimension at `index` and drops it.

        Raises:
            IndexError: the dimension has no such element.
        """
        at = self._dim(dim)
        extent = self.shape[at]
        if not -extent <= index < extent:
            raise IndexError(f"index {index} of a dimension of extent {extent}")
        return self.slice(dim, index % extent, index % extent + 1).squeeze((at,))

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> IndexView:
        """Keeps the indices start, start + step, … below `end`; bounds clamp as in Python.

        Raises:
            NotAView: the range cuts through a merged dimension.
        """
        at = self._dim(dim)
        picked = range(*slice(start, end, step).indices(self.shape[at]))
        if len(picked) == self.shape[at]:
            return self
        if not picked:  # nothing is read, so any axis will do
            dims = (*self.dims[:at], (len(self.extents),), *self.dims[at + 1 :])
            return replace(self, dims=dims, extents=(*self.extents, 0))
        axes = self.dims[at]
        if len(axes) != 1:
            return self._slice_merged(at, picked)
        return self._slice_axis(at, axes[0], picked, keep=())

    def _slice_merged(self, at: int, picked: range) -> IndexView:
        outer, *rest = self.dims[at]
        inner = prod(self.extents[a] for a in rest)
        if picked.step == 1 and picked.start % inner == 0 and len(picked) % inner == 0:
            rows = range(picked.start // inner, (picked.start + len(picked)) // inner)
            return self._slice_axis(at, outer, rows, keep=tuple(rest))
        if len(picked) and picked[0] // inner == picked[-1] // inner:
            row = picked[0] // inner
            fixed = self._slice_axis(at, outer, range(row, row + 1), keep=tuple(rest))
            return fixed.slice(at, picked[0] - row * inner, picked[-1] - row * inner + 1, picked.step)
        raise NotAView(
            f"a slice {picked} of a dimension merged from extents {tuple(self.extents[a] for a in self.dims[at])}"
        )

    def _slice_axis(self, at: int, axis: AxisIndex, picked: range, keep: tuple[AxisIndex, ...]) -> IndexView:
        new = len(self.extents)
        one = len(picked) == 1
        terms = tuple(
            tuple((new, c * picked.step) if a == axis else (a, c) for a, c in row if not (one and a == axis))
            for row in self.terms
        )
        offsets = tuple(
            o + sum(c * picked.start for a, c in row if a == axis)
            for o, row in zip(self.offsets, self.terms, strict=True)
        )
        axes = keep if one else (new, *keep)
        dims = (*self.dims[:at], axes, *self.dims[at + 1 :])
        return replace(self, dims=dims, terms=terms, offsets=offsets, extents=(*self.extents, len(picked)))

    def reshape(self, shape: tuple[int, ...]) -> IndexView:
        """Regroups the dimensions in row-major order; one extent may be -1.

        Raises:
            NotAView: a new boundary falls inside an axis that it does not divide.
        """
        return self._regrouped(shape)._fused()

    def _regrouped(self, shape: tuple[int, ...]) -> IndexView:
        shape = _resolve(shape, prod(self.shape))
        if 0 in shape:  # nothing is read, so any axes will do
            axes = range(len(self.extents), len(self.extents) + len(shape))
            return replace(self, dims=tuple((a,) for a in axes), extents=(*self.extents, *shape))
        view, queue = self, [a for d in self.dims for a in d]
        dims: list[tuple[AxisIndex, ...]] = []
        for extent in shape:
            taken: list[AxisIndex] = []
            missing = extent
            while missing > 1:
                if not queue:
                    raise NotAView(f"reshape of {self.shape} to {shape}")
                axis = queue.pop(0)
                have = view.extents[axis]
                if have > missing and have % missing == 0:
                    view, (axis, inner) = view._split(axis, have // missing)
                    queue.insert(0, inner)
                elif have > missing or missing % have != 0:
                    raise NotAView(f"reshape of {self.shape} to {shape}: extent {have} against {missing}")
                missing //= view.extents[axis]
                taken.append(axis)
            dims.append(tuple(taken))
        return replace(view, dims=tuple(dims))

    def _fused(self) -> IndexView:
        """The view with neighbouring axes of a dimension as one, where they walk every base dimension as one."""
        view = self
        for at in range(len(self.dims)):
            place = 0
            while place + 1 < len(axes := view.dims[at]):
                outer, inner = axes[place : place + 2]
                if view._walk_as_one(outer, inner):
                    view, axis = view._joined(outer, inner)
                    fewer = (*axes[:place], axis, *axes[place + 2 :])
                    view = replace(view, dims=(*view.dims[:at], fewer, *view.dims[at + 1 :]))
                else:
                    place += 1
        return view

    def _walk_as_one(self, outer: AxisIndex, inner: AxisIndex) -> bool:
        rows = [dict(row) for row in self.terms]
        return all(row.get(outer, 0) == row.get(inner, 0) * self.extents[inner] for row in rows)

    def _joined(self, outer: AxisIndex, inner: AxisIndex) -> tuple[IndexView, AxisIndex]:
        """Replaces two axes by one in the terms."""
        new, steps = len(self.extents), [dict(row).get(inner, 0) for row in self.terms]
        terms = tuple(
            tuple((new, step) if a == inner else (a, c) for a, c in row if a != outer)
            for row, step in zip(self.terms, steps, strict=True)
        )
        extents = (*self.extents, self.extents[outer] * self.extents[inner])
        return replace(self, terms=terms, extents=extents), new

    def _split(self, axis: AxisIndex, inner: int) -> tuple[IndexView, tuple[AxisIndex, AxisIndex]]:
        """Replaces `axis` by an outer and an inner one of extent `inner`."""
        outer, low = len(self.extents), len(self.extents) + 1

        def row(terms: tuple[tuple[AxisIndex, int], ...]) -> tuple[tuple[AxisIndex, int], ...]:
            out: list[tuple[AxisIndex, int]] = []
            for a, c in terms:
                out += [(outer, c * inner), (low, c)] if a == axis else [(a, c)]
            return tuple(out)

        dims = tuple(tuple(x for a in d for x in ((outer, low) if a == axis else (a,))) for d in self.dims)
        extents = (*self.extents, self.extents[axis] // inner, inner)
        view = replace(self, dims=dims, terms=tuple(map(row, self.terms)), extents=extents)
        return view, (outer, low)

    def refine(self, dim: int, inner_sizes: tuple[int, ...]) -> IndexView:
        """Splits the axes of `dim` so that it becomes factors with the given suffix products.

        `inner_sizes` lists, outermost first, how many elements lie inside each factor; the last is 1.

        Raises:
            NotAView: a boundary falls inside an axis that it does not divide.
        """
        shape, total = list[int](), self.shape[dim]
        for size in inner_sizes:
            shape.append(total // size)
            total = size
        full = (*self.shape[:dim], *shape, *self.shape[dim + 1 :])
        split = self._regrouped(full)
        merged = tuple(a for d in split.dims[dim : dim + len(shape)] for a in d)
        return replace(split, dims=(*split.dims[:dim], merged, *split.dims[dim + len(shape) :]))


def common_cuts(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The finest shape that both of two shapes with as many elements only cut further."""
    cuts = sorted({prod(a[i:]) for i in range(len(a))} & {prod(b[i:]) for i in range(len(b))} | {1}, reverse=True)
    return tuple(outer // inner for outer, inner in pairwise(cuts))


def _resolve(shape: tuple[int, ...], elements: int) -> tuple[int, ...]:
    known = prod(e for e in shape if e != -1)
    if shape.count(-1) > 1 or (shape.count(-1) == 1 and (known == 0 or elements % known)):
        raise IndexError(f"reshape of {elements} elements to {shape}")
    resolved = tuple(elements // known if e == -1 else e for e in shape)
    if prod(resolved) != elements:
        raise IndexError(f"reshape of {elements} elements to {shape}")
    return resolved
