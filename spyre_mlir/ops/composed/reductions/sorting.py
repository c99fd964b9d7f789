"""Sorting, the k largest, and other questions of rank.

An element's rank is how many elements go before it: the dimension is compared with itself and the answers are summed.
What stands at place r is then the one element of rank r. Some ten kernels, whatever the length, and equal elements
keep their order. Many rows are taken in blocks, long rows as `long_orders` has them, and very few elements of long
rows are picked one by one; what would cost more kernels than the host is worth is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import INF
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.reductions.extremes import where_first
from spyre_mlir.ops.composed.reductions.long_orders import AT_ONCE, BLOCK, PART, first_of_blocks, ordered
from spyre_mlir.ops.helpers.reduction_dims import comparable, or_nan, positions, without, without_nan
from spyre_mlir.ops.helpers.slicing import along, joined, moved, part, permuted, reshaped
from spyre_mlir.ops.ignored_arguments import SORTED, STABLE, STABLE_OR_UNSAID
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# Elements of the largest square of comparisons that is made at once, and of all of them together.
SQUARE = 2**22
MOST = 2**26
# Comparisons above which rows are long; and how many times as long as the elements wanted of each a block is.
LONG, FEW = 2**23, 4
# So few elements of long rows are picked sooner than blocks are put in order.
PICKED = 4
# The kernels that picking one element costs, and the most that an ordering may cost; as the host is there for more.
PICK, CAP = 10, 500

Pair = tuple[Value, Value]


def _ranks(b: Build, value: Value, dim: int, descending: bool) -> Value:
    """How many elements go before each along `dim`; of equal ones the first goes first, and NaN is above infinity."""
    key, place = without_nan(value), _places_of_equals(b, value, dim, descending)
    own, other = key.unsqueeze(dim + 1), key.unsqueeze(dim)
    earlier = place.unsqueeze(dim).lt(place.unsqueeze(dim + 1))
    level, ahead = (other.ge(own), other.gt(own)) if descending else (other.le(own), other.lt(own))
    before = earlier.where(level, ahead)
    return b.cast(before, "i64").sum(dim + 1)


def _places_of_equals(b: Build, value: Value, dim: int, descending: bool) -> Value:
    """Numbers that order elements with the same key: their positions, those of NaN behind all others, or before."""
    shape = value.shape
    # All dimensions, those before `dim` too: callers count dimensions from the first.
    place = reshaped(b.iota(shape[dim], "i64"), tuple(e if d == dim else 1 for d, e in enumerate(shape)))
    if not value.is_float:
        return place
    # Below 0 rather than beyond the extent: DL16 counts to 1,024 both ways.
    before = along(b.iota(shape[dim], "i64", start=-shape[dim]), len(shape), dim)
    first, last = (before, place) if descending else (place, before)
    return value.ne(value).where(first, last)


def _at_places(b: Build, value: Value, ranks: Value, dim: int, first: int, count: int) -> Pair:
    """The elements of rank first, first + 1, … along `dim`, and where they stood."""
    shape = value.shape
    rank, extent = len(shape) + 1, shape[dim]
    ones = (1,) * (rank - dim - 2)
    place = b.iota(count, "i64", start=first).view(count, 1, *ones)
    hit = ranks.unsqueeze(dim).eq(place)
    stood = b.iota(extent, "i64").view(extent, *ones)
    columns = value.unsqueeze(dim)
    # One term of each sum is not 0: nothing is rounded, and what is not a number stays in its place.
    values = hit.where(columns, b.full((), 0, value.element))
    where = hit.where(stood, b.full((), 0, "i64"))
    return values.sum(dim + 1), where.sum(dim + 1)


def _in_blocks(b: Build, value: Value, dim: int, of_block: Callable[[Value], Pair], width: int, most: int) -> Pair:
    """Applies a function to as many rows at once as its comparisons may have, and puts the results together.

    Args:
        b: what builds.
        value: the rows.
        dim: along which they run.
        of_block: is applied to some of them.
        width: how many elements each element is compared with at once.
        most: comparisons at once.
    """
    shape = value.shape
    other = max((d for d in range(len(shape)) if d != dim), key=lambda d: shape[d], default=None)
    whole = prod(shape) * width
    if other is None or whole <= most:
        return of_block(value)
    rows = max(1, most * shape[other] // whole)
    parts = [of_block(part(b, value, other, at, min(at + rows, shape[other]))) for at in range(0, shape[other], rows)]
    return joined(b, [p[0] for p in parts], other), joined(b, [p[1] for p in parts], other)


def _too_long(shape: tuple[int, ...], dim: int, compared: int) -> UnsupportedError:
    return UnsupportedError(
        f"an ordering of {shape[dim]} elements in a tensor of shape {shape}",
        hint=f"comparing a dimension with itself takes {compared} elements, {MOST} are the most",
    )


def sorted_along(b: Build, self: Value, dim: int, descending: bool, first: int, count: int) -> Pair:
    """The elements of rank first, first + 1, … along `dim`, and where they stood; as torch, NaN is the largest.

    Raises:
        UnsupportedError: the order takes too many comparisons.
    """
    shape = self.shape
    if not shape:
        return self.clone(), b.full((), 0, "i64")
    if 0 in shape:
        return self.clone(), b.full(shape, 0, "i64")
    at = dim % len(shape)
    if count == 0:
        empty = tuple(0 if d == at else e for d, e in enumerate(shape))
        return part(b, self, at, 0, 0), b.full(empty, 0, "i64")
    compared = prod(shape) * (PART if _is_few(shape[at], first, count) else shape[at])
    is_long = shape[at] ** 2 > SQUARE and prod(shape) * shape[at] > LONG
    if first == 0 and count * PICK <= CAP and (compared > MOST or (is_long and count <= PICKED and self.is_float)):
        return _picked(b, self, at, descending, count)
    if compared > MOST:
        raise _too_long(shape, at, compared)

    if is_long:
        return _long(b, self, at, descending, first, count)

    def of_block(block: Value) -> Pair:
        number = comparable(b, block)
        ranks = _ranks(b, number, at, descending)
        return _at_places(b, number, ranks, at, first, count)

    values, where = _in_blocks(b, self, at, of_block, shape[at], SQUARE)
    return b.cast(values, like=self), where


def _long(b: Build, self: Value, dim: int, descending: bool, first: int, count: int) -> Pair:
    """As `sorted_along`, for rows whose squares are larger than the scratchpads."""
    kept = [d for d in range(self.rank) if d != dim]
    shape = tuple(self.shape[d] for d in kept)
    number = b.cast(self, "f16") if self.is_bool else self
    rows = reshaped(permuted(number, [*kept, dim]), (prod(shape), self.shape[dim]))

    def of_rows(block: Value) -> Pair:
        return ordered(b, block, descending=descending, first=first, count=count)

    if _is_few(self.shape[dim], first, count):
        found = first_of_blocks(b, rows, descending=descending, count=count)
    else:
        found = _in_blocks(b, rows, 1, of_rows, BLOCK, AT_ONCE)
    values, where = (moved(reshaped(v, (*shape, count)), -1, dim) for v in found)
    return b.cast(values, like=self), where


def _is_few(extent: int, first: int, count: int) -> bool:
    """Whether the first of each block are much fewer than the elements."""
    return first == 0 and count * FEW <= PART < extent


def _picked(b: Build, self: Value, dim: int, descending: bool, count: int) -> Pair:
    """The first elements in order, one after another: each one found is put out of the way.

    Of the smallest, NaN stands as infinity.
    """
    fold, out = ("amax", -INF) if descending else ("amin", INF)
    number = comparable(b, self)
    if not number.is_float:
        raise _too_long(self.shape, dim, prod(self.shape) * PART)
    place, none = positions(b, self.shape, dim), b.full((), self.shape[dim], "i64")
    values: list[Value] = []
    found: list[Value] = []
    taken: Value | None = None
    for _ in range(count):
        left = number if taken is None else taken.where(out, number)
        key = left if descending else without_nan(left)
        best = b.call(fold, key, dim=(dim,), keepdim=True)
        hit = or_nan(b, key.eq(best), key)
        # What was taken may be as far out as what is left.
        hit = hit if taken is None else taken.where(False, hit)
        where = hit.where(place, none).amin(dim, keepdim=True)
        here = place.eq(where)
        values.append(best)
        found.append(where)
        taken = here if taken is None else b.call("logical_or", taken, here)
    return b.cast(joined(b, values, dim), like=self), joined(b, found, dim)


@ATEN.composed(aten=["sort", "sort.stable"], ulps=1, ignores=[STABLE_OR_UNSAID.ahead_of("dim")])
def sort(b: Build, self: Value, *, dim: int = -1, descending: bool = False) -> Pair:
    """The elements along `dim` in order, and where they stood; equal elements keep their order."""
    return _all_sorted(b, self, dim, descending)


def _all_sorted(b: Build, self: Value, dim: int, descending: bool) -> Pair:
    shape = self.shape
    return sorted_along(b, self, dim, descending, 0, shape[dim] if shape else 1)


@ATEN.composed(aten=["argsort", "argsort.stable"], ulps=1, ignores=[STABLE.ahead_of("dim")])
def argsort(b: Build, self: Value, *, dim: int = -1, descending: bool = False) -> Value:
    """Positions of the elements along `dim`, in sorted order; equal elements keep their order."""
    return _all_sorted(b, self, dim, descending)[1]


@ATEN.composed(aten=["msort"], ulps=1)
def msort(b: Build, self: Value) -> Value:
    """The elements along the first dimension in order."""
    return _all_sorted(b, self, 0, False)[0]


@ATEN.composed(aten=["topk"], ulps=1, ignores=[SORTED])
def topk(b: Build, self: Value, *, k: int, dim: int = -1, largest: bool = True) -> Pair:
    """The `k` largest or smallest elements along `dim` in order, and where they stood."""
    return sorted_along(b, self, dim, largest, 0, k)


def _of_rank(b: Build, self: Value, rank: int, dim: int, keepdim: bool) -> Pair:
    values, where = sorted_along(b, self, dim, False, rank, 1)
    keepdim = keepdim or not self.shape
    return without(b, values, (dim,), keepdim), without(b, where, (dim,), keepdim)


@ATEN.composed(aten=["kthvalue"], ulps=1)
def kthvalue(b: Build, self: Value, *, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    """The `k`-th smallest element along `dim`, counted from 1, and where it stands; equal elements keep their order.

    Which of several equal elements torch names is open.
    """
    return _of_rank(b, self, k - 1, dim, keepdim)


def _median(b: Build, self: Value, dim: int, keepdim: bool) -> Pair:
    shape = self.shape
    values, where = _of_rank(b, self, ((shape[dim] if shape else 1) - 1) // 2, dim, keepdim)
    if not self.is_float or not shape:
        return values, where
    wrong = self.ne(self)
    some = b.call("any.dim", wrong, dim=(dim,), keepdim=keepdim)
    first = where_first(b, "amax", wrong, dim, keepdim)
    return some.where(float("nan"), values), some.where(first, where)


@ATEN.composed(aten=["median.dim"], ulps=1)
def median_along(b: Build, self: Value, *, dim: int, keepdim: bool = False) -> Pair:
    """The middle element along `dim`, the lower one of two, and where it stands; NaN if an element is NaN."""
    return _median(b, self, dim, keepdim)


@ATEN.composed(aten=["median"], ulps=1)
def median(b: Build, self: Value) -> Value:
    """The middle one of all elements, the lower one of two; NaN if an element is NaN."""
    return _median(b, self.view(-1), 0, False)[0]


@ATEN.composed(aten=["mode"], ulps=1)
def mode(b: Build, self: Value, *, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """The element that occurs most often along `dim`, the smallest of several, and where it stands last."""
    shape = self.shape
    if not shape:
        return self.clone(), b.full((), 0, "i64")
    at, number = dim % len(shape), comparable(b, self)
    if prod(shape) * shape[at] > SQUARE:
        raise _too_long(shape, at, prod(shape) * shape[at])
    same = number.unsqueeze(at + 1).eq(number.unsqueeze(at))
    count = b.cast(same, "i64").sum(at + 1)
    most = count.eq(count.amax(at, keepdim=True))
    # An element that is not the most frequent steps aside for the largest of all, which is no smaller.
    largest = without_nan(number).amax(at, keepdim=True)
    best = most.where(number, largest).amin(at, keepdim=True)
    here = number.eq(best).where(positions(b, shape, at), b.full((), 0, "i64"))
    values, where = b.cast(best, like=self), here.amax(at, keepdim=True)
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
