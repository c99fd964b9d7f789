"""Places in sorted lists, and counts per bin: comparisons that are summed."""

from __future__ import annotations

from math import isnan, nan

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import or_nan
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def _places(b: Build, borders: Value, values: Value, right: bool, narrow: bool) -> Value:
    """How many of the borders along the last dimension go before each value."""
    if values.number is not None and isnan(values.number):
        values = b.full((), nan, "f32")
    if borders.element != values.element and values.element:
        borders, values = b.cast(borders, "f32"), b.cast(values, "f32")
    own = values.unsqueeze(-1) if values.element else values
    other = borders if borders.rank == 1 else borders.unsqueeze(-2)
    before = or_nan(b, other.le(own) if right else other.lt(own), own)  # which goes behind all
    return b.cast(before, "i32" if narrow else "i64").sum(-1)


@ATEN.composed(aten=["searchsorted.Tensor", "searchsorted.Scalar"], ulps=0)
def searchsorted(
    b: Build,
    sorted_sequence: Value,
    self: Value,
    sorter: Value | None = None,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
) -> Value:
    """Insertion positions in the sorted lists of the last dimension: before equal elements, or after them if `right`.

    `side`, "left" or "right", goes before `right`.
    """
    if sorter is not None:
        raise UnsupportedError("searchsorted with a sorter", hint="sort the sequence")
    return _places(b, sorted_sequence, self, right if side is None else side == "right", out_int32)


@ATEN.composed(aten=["bucketize.Tensor", "bucketize.Scalar"], ulps=0)
def bucketize(b: Build, self: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> Value:
    """The number of the bucket each value falls into: its border is part of it unless `right`."""
    return _places(b, boundaries, self, right, out_int32)


@ATEN.composed(aten=["histc"], ulps=0)
def histc(b: Build, self: Value, *, bins: int = 100, min: Number = 0, max: Number = 0) -> Value:
    """How many elements fall into each of `bins` equal parts of [min, max]; of their own range if both are equal."""
    low, high = (min, max) if min != max else _own_range(b, self)
    bin_of = b.full(self.shape, 0.0, self.element)
    if bins > 1:
        passed = self.unsqueeze(-1).ge(_borders(b, self, bins, low, high))
        bin_of = b.cast(passed, like=self).sum(-1)
    bin_of = self.ge(low).where(bin_of, -1.0)  # nothing that is no number is inside
    bin_of = self.le(high).where(bin_of, -1.0)
    numbers = b.cast(b.iota(bins, "i64"), like=self)
    counts = b.cast(bin_of.unsqueeze(-1).eq(numbers), like=self)
    dims = tuple(range(self.rank))
    return counts.sum(dims) if dims else counts


def _own_range(b: Build, x: Value) -> tuple[Value, Value]:
    """The smallest and the largest element; a single value stands in the middle of a range of 2."""
    low, high = x.amin(), x.amax()
    flat = low.eq(high)
    low, high = (flat.where(b.call("add.Scalar", v, d), v) for v, d in ((low, -1.0), (high, 1.0)))
    return low, high


def _borders(b: Build, x: Value, bins: int, low: Value | Number, high: Value | Number) -> Value:
    """Where parts meet; known numbers are rounded once."""
    if isinstance(low, Value) or isinstance(high, Value):
        parts = b.iota(bins - 1, x.element, start=1 / bins, step=1 / bins)
        return parts * (high - low) + low
    step = (high - low) / bins
    return b.iota(bins - 1, x.element, start=low + step, step=step)


ATEN.samples(
    searchsorted,
    Sample(((7,), (3, 4))),
    Sample(((3, 7), (3, 4)), {"right": True, "out_int32": True}),
    Sample(((7,), ()), {"side": "right"}),
)
ATEN.samples(bucketize, Sample(((3, 4), (7,))), Sample(((3, 65), (5,)), {"right": True, "out_int32": True}))
ATEN.samples(
    histc,
    Sample(((3, 65),), {"bins": 5, "min": -1, "max": 1}),
    Sample(((40,),), {"bins": 4}),
    Sample(((9,),), {"bins": 1}),
)
