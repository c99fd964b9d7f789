"""Running sums, products and extremes along a dimension.

Two ways. A short dimension is compared with itself: element i of the result folds the elements j <= i of a square,
four kernels whatever the length. A long one doubles: every step folds in the element 1, 2, 4, … places before, in
log2(n) steps. Neither multiplies by zeros and ones, so infinities and what is not a number stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from spyre_mlir.ops.annotations import DType, Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.reductions.sums import finite
from spyre_mlir.ops.helpers.reduction_dims import comparable, or_nan, positions
from spyre_mlir.ops.helpers.slicing import joined, part
from spyre_mlir.ops.table import Sample

# Elements of the largest square that is made: 2 MiB in DL16, what all scratchpads together hold.
SQUARE = 2**20

Values = tuple[Any, ...]


def fits_a_square(b: Build, value: Any, dim: int) -> bool:
    """Whether a dimension may be compared with itself."""
    shape = b.shape(value)
    return prod(shape) * shape[dim] <= SQUARE


def square(b: Build, value: Any, dim: int) -> tuple[Any, Any, Any]:
    """A value as rows i and as columns j of a square at `dim`, and where j <= i."""
    rank, extent = len(b.shape(value)) + 1, b.shape(value)[dim]
    rows, columns = b.call("unsqueeze", value, dim=dim + 1), b.call("unsqueeze", value, dim=dim)
    shape = tuple(extent if d in (dim, dim + 1) else 1 for d in range(rank))
    before = b.call("le.Tensor", positions(b, shape, dim + 1), positions(b, shape, dim))
    return rows, columns, before


def doubled(b: Build, values: Values, dim: int, fold: Callable[[Values, Values], Values]) -> Values:
    """Folds every element with all before it; `fold` takes earlier elements first."""
    extent, reach = b.shape(values[0])[dim], 1
    while reach < extent:
        earlier = tuple(part(b, v, dim, 0, extent - reach) for v in values)
        later = tuple(part(b, v, dim, reach, extent) for v in values)
        folded = fold(earlier, later)
        values = tuple(joined(b, [part(b, v, dim, 0, reach), f], dim) for v, f in zip(values, folded, strict=True))
        reach *= 2
    return values


def _copied(b: Build, self: Any) -> bool:
    """Whether there is nothing to fold."""
    return not b.shape(self) or prod(b.shape(self)) == 0


def _widened(b: Build, self: Any, dtype: str | None) -> Any:
    """In the element type of the result; import has widened what torch widens, all but truth values of a program."""
    return b.cast(self, dtype or ("i64" if b.is_bool(self) else b.element(self)))


@ATEN.composed(aten=["cumsum"], promote=True)
def cumsum(b: Build, self: Lanes, *, dim: int, dtype: DType | None = None) -> Any:
    """The sum of each element and all before it along `dim`."""
    value = _widened(b, self, dtype)
    if _copied(b, value):
        return b.call("clone", value)
    at = dim % len(b.shape(value))
    if not fits_a_square(b, value, at):
        return doubled(b, (value,), at, lambda x, y: (b.call("add.Tensor", x[0], y[0]),))[0]
    _, columns, before = square(b, value, at)
    terms = b.call("where.self", before, columns, b.full((), 0, b.element(value)))
    return b.call("sum.dim_IntList", terms, dim=(at + 1,))


@ATEN.composed(aten=["cumprod"], promote=True)
def cumprod(b: Build, self: Lanes, *, dim: int, dtype: DType | None = None) -> Any:
    """The product of each element and all before it along `dim`."""
    value = _widened(b, self, dtype)
    if _copied(b, value):
        return b.call("clone", value)
    at = dim % len(b.shape(value))
    return doubled(b, (value,), at, lambda x, y: (b.call("mul.Tensor", x[0], y[0]),))[0]


def _running_extreme(b: Build, self: Any, dim: int, fold: str, not_behind: str) -> Any:
    """The extreme so far and its last position; what is not a number stays the extreme once it came."""
    if _copied(b, self):
        return b.call("clone", self), b.full(b.shape(self), 0, "i64")
    at, number = dim % len(b.shape(self)), comparable(b, self)
    if fits_a_square(b, self, at):
        rows, columns, before = square(b, number, at)
        # Behind the diagonal stands the element itself again, with its own position: no number has to be neutral.
        seen = b.call("where.self", before, columns, rows)
        best = b.call(fold, seen, dim=(at + 1,), keepdim=True)
        shape = b.shape(seen)
        place = b.call("minimum", positions(b, shape, at), positions(b, shape, at + 1))
        found = b.call("where.self", or_nan(b, b.call("eq.Tensor", seen, best), seen), place, b.full((), 0, "i64"))
        values, where = b.call("squeeze.dims", best, dim=(at + 1,)), b.call("amax", found, dim=(at + 1,))
    else:
        start = b.call("expand", positions(b, b.shape(number), at), size=b.shape(number))

        def later_wins(x: Values, y: Values) -> Values:
            wins = or_nan(b, b.call(not_behind, y[0], x[0]), y[0])
            return tuple(b.call("where.self", wins, late, early) for early, late in zip(x, y, strict=True))

        values, where = doubled(b, (number, start), at, later_wins)
    return b.cast(values, like=self), where


@ATEN.composed(aten=["cummax"], ulps=1)
def cummax(b: Build, self: Lanes, *, dim: int) -> Any:
    """The largest element so far along `dim`, and the last position where it stood."""
    return _running_extreme(b, self, dim, "amax", "ge.Tensor")


@ATEN.composed(aten=["cummin"], ulps=1)
def cummin(b: Build, self: Lanes, *, dim: int) -> Any:
    """The smallest element so far along `dim`, and the last position where it stood."""
    return _running_extreme(b, self, dim, "amin", "le.Tensor")


@ATEN.composed(aten=["logcumsumexp"], promote=True)
def logcumsumexp(b: Build, self: Lanes, *, dim: int) -> Any:
    """The logarithm of the sum of the exponentials of each element and all before it along `dim`."""
    if _copied(b, self):
        return b.call("clone", self)
    at = dim % len(b.shape(self))
    if not fits_a_square(b, self, at):

        def together(x: Values, y: Values) -> Values:
            peak = finite(b, b.call("maximum", x[0], y[0]))
            terms = [b.call("exp", b.call("sub.Tensor", v[0], peak)) for v in (x, y)]
            return (b.call("add.Tensor", b.call("log", b.call("add.Tensor", *terms)), peak),)

        return doubled(b, (self,), at, together)[0]
    rows, columns, before = square(b, self, at)
    seen = b.call("where.self", before, columns, rows)
    peak = finite(b, b.call("amax", seen, dim=(at + 1,), keepdim=True))
    terms = b.call("where.self", before, b.call("exp", b.call("sub.Tensor", seen, peak)), 0.0)
    total = b.call("sum.dim_IntList", terms, dim=(at + 1,), keepdim=True)
    return b.call("squeeze.dims", b.call("add.Tensor", b.call("log", total), peak), dim=(at + 1,))


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
