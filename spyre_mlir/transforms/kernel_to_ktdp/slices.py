"""Elements of a core's slice of a buffer in a tensor, and the steps from one such tensor to another.

Two kernels may walk the same slice by different loops: one has rows and columns where the next has sticks and lanes.
Both are boxes of elements at strides, so the way between them is: split dimensions, take a box, permute, merge.
Plain values, no IR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from spyre_mlir.transforms.kernel_to_ktdp.tiles import LoopPart, OperandWalk, TiledKernel

# The axis of what has none: a view or a tensor of a buffer has at least one dimension.
ONE: LoopPart = ("", 1)


@dataclass(frozen=True)
class SliceForm:
    """The elements of a slice that a tensor holds.

    Attributes:
        offset: the first element.
        dims: per dimension of the tensor, elements of the slice from one to the next, and how many.
    """

    offset: int
    dims: tuple[tuple[int, int], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the tensor."""
        return tuple(count for _, count in self.dims)

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Recast:
    """The steps from a tensor of one form to a tensor of another.

    Attributes:
        split: the source, its dimensions split so that each is kept, cut or dropped as a whole.
        hull: extents of a tensor of zeros that has the elements the source lacks too; None where it lacks none.
        place: where the source begins in it.
        first: first element of the box that the target takes.
        sizes: extents of the box.
        order: of the box without its dimensions of extent 1, which dimension each of the target's parts is.
        shape: extents of the target.
    """

    split: tuple[int, ...]
    hull: tuple[int, ...] | None
    place: tuple[int, ...]
    first: tuple[int, ...]
    sizes: tuple[int, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def squeezed(self) -> tuple[int, ...]:
        """Return the box without its dimensions of extent 1."""
        return tuple(n for n in self.sizes if n > 1)


def form_of(kernel: TiledKernel, reading: OperandWalk, axes: Sequence[LoopPart]) -> SliceForm:
    """Return the accessed part of a slice in a kernel, as a tensor along axes."""
    dims = [(1, 1) if a == ONE else (reading.strides.get(a, 1), kernel.count(a, local=True)) for a in axes]
    return SliceForm(reading.offset, tuple(dims))


def recast(source: SliceForm, target: SliceForm) -> Recast | None:
    """Return the steps from one form to another; None where their strides have no common parts."""
    bases = sorted({stride for stride, count in (*source.dims, *target.dims) if count > 1})
    unit = bases[0] if bases else max(source.offset, target.offset) + 1
    if any(high % low for low, high in pairwise(bases)) or source.offset % unit != target.offset % unit:
        return None
    have, want = _Digits.of(source, bases), _Digits.of(target, bases)
    if have is None or want is None:
        return None
    axes = [digit for dim in have.dims for digit in (dim or (None,))]
    axes += [d for d in range(len(bases)) if d not in axes and have.ranges[d] != want.ranges[d]]
    given = [(0, 1) if d is None else have.ranges[d] for d in axes]
    taken = [(0, 1) if d is None else want.ranges[d] for d in axes]
    low = [min(a[0], b[0]) for a, b in zip(given, taken, strict=True)]
    high = [max(sum(a), sum(b)) for a, b in zip(given, taken, strict=True)]
    hull = tuple(b - a for a, b in zip(low, high, strict=True))
    split = tuple(count for _, count in given)
    kept = [d for d, (_, count) in zip(axes, taken, strict=True) if count > 1]
    return Recast(
        split,
        None if hull == split else hull,
        tuple(a - b for (a, _), b in zip(given, low, strict=True)),
        tuple(a - b for (a, _), b in zip(taken, low, strict=True)),
        tuple(count for _, count in taken),
        tuple(kept.index(d) for dim in want.dims for d in dim),
        target.shape,
    )


def same_elements(one: SliceForm, other: SliceForm) -> bool:
    """Return whether two tensors hold the same elements of a slice, in any order."""
    steps = recast(one, other)
    return steps is not None and steps.hull is None and one.size == other.size


@dataclass(frozen=True)
class _Digits:
    """A form, counted in the digits of the element's number; the bases are the strides of both forms.

    Attributes:
        ranges: per digit the first value and how many.
        dims: per dimension of the form the digits it walks, the outermost first.
    """

    ranges: tuple[tuple[int, int], ...]
    dims: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(form: SliceForm, bases: Sequence[int]) -> _Digits | None:
        """The digits of a form; None where a dimension ends inside a digit and goes on in the next."""
        ratios = [high // low for low, high in pairwise(bases)]
        counts, dims = [1] * len(bases), list[tuple[int, ...]]()
        for stride, count in form.dims:
            walked, rest, digit = list[int](), count, bases.index(stride) if count > 1 else 0
            while rest > 1:
                steps = min(rest, ratios[digit]) if digit < len(ratios) else rest
                if rest % steps or counts[digit] > 1:
                    return None
                counts[digit] = steps
                walked.insert(0, digit)
                rest, digit = rest // steps, digit + 1
            dims.append(tuple(walked))
        rest, ranges = form.offset, list[tuple[int, int]]()
        for digit in reversed(range(len(bases))):
            first, rest = divmod(rest, bases[digit])
            if digit < len(ratios) and first + counts[digit] > ratios[digit]:
                return None
            ranges.insert(0, (first, counts[digit]))
        return _Digits(tuple(ranges), tuple(dims))


__all__ = ["ONE", "Recast", "SliceForm", "form_of", "recast", "same_elements"]
