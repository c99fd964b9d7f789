"""Running sums, products and extremes along a dimension.

Two ways. A short dimension is compared with itself: element i of the result folds the elements j <= i of a square,
four kernels whatever the length. A long one doubles: every step folds in the element 1, 2, 4, … places before, in
log2(n) steps. Sums of long dimensions are those of blocks, made in squares, plus those of the blocks before; eleven
kernels. None of them multiplies by zeros and ones, so infinities and what is not a number stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from spyre_mlir.ops.annotations import DType, Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.reductions.sums import finite
from spyre_mlir.ops.helpers.reduction_dims import comparable, or_nan, positions
from spyre_mlir.ops.helpers.slicing import joined, part, reshaped
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# Elements of the largest square that is made: 2 MiB in DL16, what all scratchpads together hold.
SQUARE = 2**20
# Elements of a block of a long dimension, which is compared with itself; fewest blocks that gain; most elements of all.
BLOCK, FEWEST, IN_BLOCKS = 64, 16, 2**16

Values = tuple[Value, ...]


def fits_a_square(value: Value, dim: int) -> bool:
    """Return whether a dimension is short enough to be compared with itself."""
    shape = value.shape
    return prod(shape) * shape[dim] <= SQUARE


def square(b: Build, value: Value, dim: int, *, own: bool = True) -> tuple[Value, Value, Value]:
    """A value as rows i and as columns j of a square at `dim`, and where j <= i, or j < i without the own element."""
    rank, extent = value.rank + 1, value.shape[dim]
    rows, columns = value.unsqueeze(dim + 1), value.unsqueeze(dim)
    shape = tuple(extent if d in (dim, dim + 1) else 1 for d in range(rank))
    column, row = positions(b, shape, dim + 1), positions(b, shape, dim)
    return rows, columns, column.le(row) if own else column.lt(row)


def doubled(b: Build, values: Values, dim: int, fold: Callable[[Values, Values], Values]) -> Values:
    """Folds every element with all before it; `fold` takes earlier elements first."""
    extent, reach = values[0].shape[dim], 1
    while reach < extent:
        earlier = tuple(part(b, v, dim, 0, extent - reach) for v in values)
        later = tuple(part(b, v, dim, reach, extent) for v in values)
        folded = fold(earlier, later)
        values = tuple(joined(b, [part(b, v, dim, 0, reach), f], dim) for v, f in zip(values, folded, strict=True))
        reach *= 2
    return values


def _copied(self: Value) -> bool:
    """Whether there is nothing to fold."""
    return not self.shape or prod(self.shape) == 0


def _widened(b: Build, self: Value, dtype: str | None) -> Value:
    """In the element type of the result; import has widened what torch widens, all but truth values of a program."""
    return b.cast(self, dtype or ("i64" if self.is_bool else self.element))


@ATEN.composed(aten=["cumsum"], promote=True)
def cumsum(b: Build, self: Value, *, dim: int, dtype: DType | None = None) -> Value:
    """The sum of each element and all before it along `dim`."""
    value = _widened(b, self, dtype)
    if _copied(value):
        return value.clone()
    at = dim % value.rank
    if fits_a_square(value, at):
        return _summed(b, value, at)
    if _fits_in_blocks(value.shape, at):
        return _summed_in_blocks(b, value, at)
    return doubled(b, (value,), at, lambda x, y: (x[0] + y[0],))[0]


def _summed(b: Build, value: Value, dim: int, *, own: bool = True) -> Value:
    """Sums of each element and all before it along a short dimension; or of those before it alone."""
    _, columns, before = square(b, value, dim, own=own)
    return before.where(columns, b.full((), 0, value.element)).sum(dim + 1)


def _fits_in_blocks(shape: Ints, dim: int) -> bool:
    """Whether a long dimension is whole blocks, enough of them to gain, and few enough to be summed like one."""
    count, all_blocks = shape[dim] // BLOCK, prod(shape) // BLOCK
    return shape[dim] % BLOCK == 0 and count >= FEWEST and count * all_blocks <= SQUARE and prod(shape) <= IN_BLOCKS


def _summed_in_blocks(b: Build, value: Value, dim: int) -> Value:
    """Sums along a long dimension: those in each block, and of the blocks before it."""
    shape, count = value.shape, value.shape[dim] // BLOCK
    sums = _summed(b, reshaped(value, (*shape[:dim], count, BLOCK, *shape[dim + 1 :])), dim + 1)
    whole = part(b, sums, dim + 1, BLOCK - 1, BLOCK)
    return reshaped(sums + _summed(b, whole, dim, own=False), shape)


@ATEN.composed(aten=["cumprod"], promote=True)
def cumprod(b: Build, self: Value, *, dim: int, dtype: DType | None = None) -> Value:
    """The product of each element and all before it along `dim`."""
    value = _widened(b, self, dtype)
    if _copied(value):
        return value.clone()
    at = dim % value.rank
    return doubled(b, (value,), at, lambda x, y: (x[0] * y[0],))[0]


def _running_extreme(b: Build, self: Value, dim: int, fold: str, not_behind: str) -> tuple[Value, Value]:
    """The extreme so far and its last position; what is not a number stays the extreme once it came."""
    if _copied(self):
        return self.clone(), b.full(self.shape, 0, "i64")
    at, number = dim % self.rank, comparable(b, self)
    if fits_a_square(self, at):
        rows, columns, before = square(b, number, at)
        # Behind the diagonal stands the element itself again, with its own position: no number has to be neutral.
        seen = before.where(columns, rows)
        best = b.call(fold, seen, dim=(at + 1,), keepdim=True)
        shape = seen.shape
        place = positions(b, shape, at).minimum(positions(b, shape, at + 1))
        found = or_nan(b, seen.eq(best), seen).where(place, b.full((), 0, "i64"))
        values, where = b.call("squeeze.dims", best, dim=(at + 1,)), found.amax(at + 1)
    else:
        start = positions(b, number.shape, at).expand(*number.shape)

        def later_wins(x: Values, y: Values) -> Values:
            wins = or_nan(b, b.call(not_behind, y[0], x[0]), y[0])
            return tuple(wins.where(late, early) for early, late in zip(x, y, strict=True))

        values, where = doubled(b, (number, start), at, later_wins)
    return b.cast(values, like=self), where


@ATEN.composed(aten=["cummax"], ulps=1)
def cummax(b: Build, self: Value, *, dim: int) -> tuple[Value, Value]:
    """The largest element so far along `dim`, and the last position where it stood."""
    return _running_extreme(b, self, dim, "amax", "ge.Tensor")


@ATEN.composed(aten=["cummin"], ulps=1)
def cummin(b: Build, self: Value, *, dim: int) -> tuple[Value, Value]:
    """The smallest element so far along `dim`, and the last position where it stood."""
    return _running_extreme(b, self, dim, "amin", "le.Tensor")


@ATEN.composed(aten=["logcumsumexp"], promote=True)
def logcumsumexp(b: Build, self: Value, *, dim: int) -> Value:
    """The logarithm of the sum of the exponentials of each element and all before it along `dim`."""
    if _copied(self):
        return self.clone()
    at = dim % self.rank
    if not fits_a_square(self, at):

        def together(x: Values, y: Values) -> Values:
            peak = finite(b, x[0].maximum(y[0]))
            return (((x[0] - peak).exp() + (y[0] - peak).exp()).log() + peak,)

        return doubled(b, (self,), at, together)[0]
    rows, columns, before = square(b, self, at)
    seen = before.where(columns, rows)
    peak = finite(b, seen.amax(at + 1, keepdim=True))
    terms = before.where((seen - peak).exp(), 0.0)
    total = terms.sum(at + 1, keepdim=True)
    return b.call("squeeze.dims", total.log() + peak, dim=(at + 1,))


for _entry in (cumsum, cumprod, cummax, cummin, logcumsumexp):
    ATEN.samples(
        _entry,
        Sample(((3, 65),), {"dim": -1}),
        Sample(((4, 5, 6),), {"dim": 1}),
        Sample(((7,),), {"dim": 0}),
        Sample(((),), {"dim": 0}),
        # Too long for a square.
        Sample(((2, 1030),), {"dim": 1}, low=0.9, high=1.1),
    )
ATEN.samples(cumsum, Sample(((1, 1088),), {"dim": 1}))  # seventeen blocks
