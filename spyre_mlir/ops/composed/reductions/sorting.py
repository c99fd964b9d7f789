"""Sorting, the k largest, and other questions of rank.

An element's rank is how many elements go before it: the dimension is compared with itself and the answers are summed.
What stands at place r is then the one element of rank r. Some ten kernels, whatever the length, and equal elements
keep their order. Long dimensions are taken in blocks of rows, and the few largest of a very long one are picked one by
one; what would cost more kernels than the host is worth is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import INF, Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.reductions.extremes import where_first
from spyre_mlir.ops.helpers.reduction_dims import comparable, is_float, or_nan, positions, without, without_nan
from spyre_mlir.ops.helpers.slicing import along, joined, part, reshaped
from spyre_mlir.ops.table import Sample

# Elements of the largest square of comparisons that is made at once, and of all of them together.
SQUARE = 2**22
MOST = 2**26
# The kernels that picking one element costs, and the most that an ordering may cost; as the host is there for more.
PICK, CAP = 10, 500

Pair = tuple[Any, Any]


def _ranks(b: Build, value: Any, dim: int, descending: bool) -> Any:
    """How many elements go before each along `dim`; of equal ones the first goes first, and NaN is above infinity."""
    key, place = without_nan(b, value), _places_of_equals(b, value, dim, descending)
    own, other = b.call("unsqueeze", key, dim=dim + 1), b.call("unsqueeze", key, dim=dim)
    earlier = b.call("lt.Tensor", b.call("unsqueeze", place, dim=dim), b.call("unsqueeze", place, dim=dim + 1))
    ahead, level = ("gt.Tensor", "ge.Tensor") if descending else ("lt.Tensor", "le.Tensor")
    before = b.call("where.self", earlier, b.call(level, other, own), b.call(ahead, other, own))
    return b.call("sum.dim_IntList", b.cast(before, "i64"), dim=(dim + 1,))


def _places_of_equals(b: Build, value: Any, dim: int, descending: bool) -> Any:
    """Numbers that order elements with the same key: their positions, those of NaN behind all others, or before."""
    shape = b.shape(value)
    # All dimensions, those before `dim` too: callers count dimensions from the first.
    place = reshaped(b, b.iota(shape[dim], "i64"), tuple(e if d == dim else 1 for d, e in enumerate(shape)))
    if not is_float(b, value):
        return place
    # Below 0 rather than beyond the extent: DL16 counts to 1,024 both ways.
    before = along(b, b.iota(shape[dim], "i64", start=-shape[dim]), len(shape), dim)
    first, last = (before, place) if descending else (place, before)
    return b.call("where.self", b.call("ne.Tensor", value, value), first, last)


def _at_places(b: Build, value: Any, ranks: Any, dim: int, first: int, count: int) -> Pair:
    """The elements of rank first, first + 1, … along `dim`, and where they stood."""
    shape = b.shape(value)
    rank, extent = len(shape) + 1, shape[dim]
    ones = (1,) * (rank - dim - 2)
    place = b.call("view", b.iota(count, "i64", start=first), size=(count, 1, *ones))
    hit = b.call("eq.Tensor", b.call("unsqueeze", ranks, dim=dim), place)
    stood = b.call("view", b.iota(extent, "i64"), size=(extent, *ones))
    columns = b.call("unsqueeze", value, dim=dim)
    # One term of each sum is not 0: nothing is rounded, and what is not a number stays in its place.
    values = b.call("where.self", hit, columns, b.full((), 0, b.element(value)))
    where = b.call("where.self", hit, stood, b.full((), 0, "i64"))
    return b.call("sum.dim_IntList", values, dim=(dim + 1,)), b.call("sum.dim_IntList", where, dim=(dim + 1,))


def _in_blocks(b: Build, value: Any, dim: int, count: int, of_block: Callable[[Any], Pair]) -> Pair:
    """Applies a function to as many rows at once as its squares may have, and puts the results together."""
    shape = b.shape(value)
    other = max((d for d in range(len(shape)) if d != dim), key=lambda d: shape[d], default=None)
    whole = prod(shape) * shape[dim]
    if other is None or whole <= SQUARE:
        return of_block(value)
    rows = max(1, SQUARE * shape[other] // whole)
    parts = [of_block(part(b, value, other, at, min(at + rows, shape[other]))) for at in range(0, shape[other], rows)]
    return joined(b, [p[0] for p in parts], other), joined(b, [p[1] for p in parts], other)


def _too_long(shape: tuple[int, ...], dim: int) -> UnsupportedError:
    return UnsupportedError(
        f"an ordering of {shape[dim]} elements in a tensor of shape {shape}",
        hint=f"comparing a dimension with itself takes {prod(shape) * shape[dim]} elements, {MOST} are the most",
    )


def sorted_along(b: Build, self: Any, dim: int, descending: bool, first: int, count: int) -> Pair:
    """The elements of rank first, first + 1, … along `dim`, and where they stood; as torch, NaN is the largest."""
    shape = b.shape(self)
    if not shape:
        return b.call("clone", self), b.full((), 0, "i64")
    if 0 in shape:
        return b.call("clone", self), b.full(shape, 0, "i64")
    at = dim % len(shape)
    if count == 0:
        empty = tuple(0 if d == at else e for d, e in enumerate(shape))
        return part(b, self, at, 0, 0), b.full(empty, 0, "i64")
    if prod(shape) * shape[at] > MOST:
        if first == 0 and count * PICK <= CAP:
            return _picked(b, self, at, descending, count)
        raise _too_long(shape, at)

    def of_block(block: Any) -> Pair:
        number = comparable(b, block)
        ranks = _ranks(b, number, at, descending)
        return _at_places(b, number, ranks, at, first, count)

    values, where = _in_blocks(b, self, at, count, of_block)
    return b.cast(values, like=self), where


def _picked(b: Build, self: Any, dim: int, descending: bool, count: int) -> Pair:
    """The first elements in order, one after another: each one found is put out of the way.

    Of the smallest, NaN stands as infinity.
    """
    fold, out = ("amax", -INF) if descending else ("amin", INF)
    number = comparable(b, self)
    if not is_float(b, number):
        raise _too_long(b.shape(self), dim)
    place, none = positions(b, b.shape(self), dim), b.full((), b.shape(self)[dim], "i64")
    values: list[Any] = []
    found: list[Any] = []
    taken: Any = None
    for _ in range(count):
        left = number if taken is None else b.call("where.self", taken, out, number)
        key = left if descending else without_nan(b, left)
        best = b.call(fold, key, dim=(dim,), keepdim=True)
        hit = or_nan(b, b.call("eq.Tensor", key, best), key)
        # What was taken may be as far out as what is left.
        hit = hit if taken is None else b.call("where.self", taken, False, hit)
        where = b.call("amin", b.call("where.self", hit, place, none), dim=(dim,), keepdim=True)
        here = b.call("eq.Tensor", place, where)
        values.append(best)
        found.append(where)
        taken = here if taken is None else b.call("logical_or", taken, here)
    return b.cast(joined(b, values, dim), like=self), joined(b, found, dim)


@ATEN.composed(aten=["sort", "sort.stable"], ulps=1)
def sort(b: Build, self: Lanes, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """The elements along `dim` in order, and where they stood; equal elements keep their order."""
    return _all_sorted(b, self, dim, descending)


def _all_sorted(b: Build, self: Any, dim: int, descending: bool) -> Pair:
    shape = b.shape(self)
    return sorted_along(b, self, dim, descending, 0, shape[dim] if shape else 1)


@ATEN.composed(aten=["argsort", "argsort.stable"], ulps=1)
def argsort(b: Build, self: Lanes, *, stable: bool = False, dim: int = -1, descending: bool = False) -> Any:
    """Where the elements along `dim` stood, in order; equal elements keep their order."""
    return _all_sorted(b, self, dim, descending)[1]


@ATEN.composed(aten=["msort"], ulps=1)
def msort(b: Build, self: Lanes) -> Any:
    """The elements along the first dimension in order."""
    return _all_sorted(b, self, 0, False)[0]


@ATEN.composed(aten=["topk"], ulps=1)
def topk(b: Build, self: Lanes, *, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The `k` largest or smallest elements along `dim` in order, and where they stood."""
    return sorted_along(b, self, dim, largest, 0, k)


def _of_rank(b: Build, self: Any, rank: int, dim: int, keepdim: bool) -> Pair:
    values, where = sorted_along(b, self, dim, False, rank, 1)
    keepdim = keepdim or not b.shape(self)
    return without(b, values, (dim,), keepdim), without(b, where, (dim,), keepdim)


@ATEN.composed(aten=["kthvalue"], ulps=1)
def kthvalue(b: Build, self: Lanes, *, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The `k`-th smallest element along `dim`, counted from 1, and where it stands."""
    return _of_rank(b, self, k - 1, dim, keepdim)


def _median(b: Build, self: Any, dim: int, keepdim: bool) -> Pair:
    shape = b.shape(self)
    values, where = _of_rank(b, self, ((shape[dim] if shape else 1) - 1) // 2, dim, keepdim)
    if not is_float(b, self) or not shape:
        return values, where
    wrong = b.call("ne.Tensor", self, self)
    some = b.call("any.dim", wrong, dim=(dim,), keepdim=keepdim)
    first = where_first(b, "amax", wrong, dim, keepdim)
    return b.call("where.self", some, float("nan"), values), b.call("where.self", some, first, where)


@ATEN.composed(aten=["median.dim"], ulps=1)
def median_along(b: Build, self: Lanes, *, dim: int, keepdim: bool = False) -> Any:
    """The middle element along `dim`, the lower one of two, and where it stands; NaN if an element is NaN."""
    return _median(b, self, dim, keepdim)


@ATEN.composed(aten=["median"], ulps=1)
def median(b: Build, self: Lanes) -> Any:
    """The middle one of all elements, the lower one of two; NaN if an element is NaN."""
    return _median(b, b.call("view", self, size=(-1,)), 0, False)[0]


@ATEN.composed(aten=["mode"], ulps=1)
def mode(b: Build, self: Lanes, *, dim: int = -1, keepdim: bool = False) -> Any:
    """The element that occurs most often along `dim`, the smallest of several, and where it stands last."""
    shape = b.shape(self)
    if not shape:
        return b.call("clone", self), b.full((), 0, "i64")
    at, number = dim % len(shape), comparable(b, self)
    if prod(shape) * shape[at] > SQUARE:
        raise _too_long(shape, at)
    same = b.call("eq.Tensor", b.call("unsqueeze", number, dim=at + 1), b.call("unsqueeze", number, dim=at))
    count = b.call("sum.dim_IntList", b.cast(same, "i64"), dim=(at + 1,))
    most = b.call("eq.Tensor", count, b.call("amax", count, dim=(at,), keepdim=True))
    # An element that is not the most frequent steps aside for the largest of all, which is no smaller.
    largest = b.call("amax", without_nan(b, number), dim=(at,), keepdim=True)
    best = b.call("amin", b.call("where.self", most, number, largest), dim=(at,), keepdim=True)
    here = b.call("where.self", b.call("eq.Tensor", number, best), positions(b, shape, at), b.full((), 0, "i64"))
    values, where = b.cast(best, like=self), b.call("amax", here, dim=(at,), keepdim=True)
    return without(b, values, (at,), keepdim), without(b, where, (at,), keepdim)


for _entry in (sort, argsort):
    ATEN.samples(
        _entry,
        Sample(((3, 65),)),
        Sample(((4, 5, 6),), {"dim": 1, "descending": True}),
        Sample(((7,),), {"dim": 0}),
        Sample(((),)),
    )
for _entry in (sort, argsort):
    ATEN.samples(_entry, Sample(((4, 9),), {"stable": True, "descending": True}))
ATEN.samples(msort, Sample(((5, 7),)))
ATEN.samples(
    topk,
    Sample(((3, 65),), {"k": 3}),
    Sample(((4, 5, 6),), {"k": 2, "dim": 1, "largest": False}),
    Sample(((4, 5),), {"k": 5, "dim": -1}),
)
ATEN.samples(kthvalue, Sample(((3, 65),), {"k": 5}), Sample(((4, 5, 6),), {"k": 2, "dim": 1, "keepdim": True}))
ATEN.samples(median_along, Sample(((3, 65),), {"dim": -1}), Sample(((4, 6, 2),), {"dim": 1, "keepdim": True}))
ATEN.samples(median, Sample(((4, 5),)))
ATEN.samples(mode, Sample(((3, 65),), {"dim": -1}), Sample(((4, 6, 2),), {"dim": 1, "keepdim": True}))
