"""Places in sorted lists, counts per bin, and truth at a place: comparisons that are summed."""

from __future__ import annotations

from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Lanes, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import or_nan
from spyre_mlir.ops.table import Sample


def _places(b: Build, borders: Any, values: Any, right: bool, narrow: bool) -> Any:
    """How many of the borders along the last dimension go before each value."""
    if b.element(borders) != b.element(values) and b.element(values):
        borders, values = (b.cast(v, "f32") for v in (borders, values))
    own = b.call("unsqueeze", values, dim=-1) if b.element(values) else values
    other = borders if len(b.shape(borders)) == 1 else b.call("unsqueeze", borders, dim=-2)
    before = or_nan(b, b.call("le.Tensor" if right else "lt.Tensor", other, own), own)  # which goes behind all
    return b.call("sum.dim_IntList", b.cast(before, "i32" if narrow else "i64"), dim=(-1,))


@ATEN.composed(aten=["searchsorted.Tensor", "searchsorted.Scalar"], ulps=0)
def searchsorted(
    b: Build,
    sorted_sequence: Lanes,
    self: Lanes,
    sorter: Lanes | None = None,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
) -> Any:
    """Where each value would be put into the sorted lists of the last dimension: before or, `right`, behind equals.

    `side`, "left" or "right", goes before `right`.
    """
    if sorter is not None:
        raise UnsupportedError("searchsorted with a sorter", hint="sort the sequence")
    return _places(b, sorted_sequence, self, right if side is None else side == "right", out_int32)


@ATEN.composed(aten=["bucketize.Tensor", "bucketize.Scalar"], ulps=0)
def bucketize(b: Build, self: Lanes, boundaries: Lanes, *, out_int32: bool = False, right: bool = False) -> Any:
    """The number of the bucket each value falls into: its border is part of it unless `right`."""
    return _places(b, boundaries, self, right, out_int32)


@ATEN.composed(aten=["histc"], ulps=0)
def histc(b: Build, self: Lanes, *, bins: int = 100, min: Number = 0, max: Number = 0) -> Any:
    """How many elements fall into each of `bins` equal parts of [min, max]; of their own range if both are equal."""
    low, high, borders = (min, max, _known_borders) if min != max else (*_own_range(b, self), _borders_within)
    bin_of: Any = b.full(b.shape(self), 0.0, b.element(self))
    if bins > 1:
        passed = b.call("ge.Tensor", b.call("unsqueeze", self, dim=-1), borders(b, self, bins, low, high))
        bin_of = b.call("sum.dim_IntList", b.cast(passed, like=self), dim=(-1,))
    for inside, border in (("ge", low), ("le", high)):  # nothing that is no number is inside
        kind = "Tensor" if b.element(border) else "Scalar"
        bin_of = b.call("where.self", b.call(f"{inside}.{kind}", self, border), bin_of, -1.0)
    numbers = b.cast(b.iota(bins, "i64"), like=self)
    counts = b.cast(b.call("eq.Tensor", b.call("unsqueeze", bin_of, dim=-1), numbers), like=self)
    dims = tuple(range(len(b.shape(self))))
    return b.call("sum.dim_IntList", counts, dim=dims) if dims else counts


def _own_range(b: Build, x: Any) -> tuple[Any, Any]:
    """The smallest and the largest element; a single value stands in the middle of a range of 2."""
    low, high = b.call("amin", x, dim=()), b.call("amax", x, dim=())
    flat = b.call("eq.Tensor", low, high)
    low, high = (b.call("where.self", flat, b.call("add.Scalar", v, d), v) for v, d in ((low, -1.0), (high, 1.0)))
    return low, high


def _known_borders(b: Build, x: Any, bins: int, low: float, high: float) -> Any:
    """Where parts meet, as known numbers: each is rounded once."""
    step = (high - low) / bins
    return b.iota(bins - 1, b.element(x), start=low + step, step=step)


def _borders_within(b: Build, x: Any, bins: int, low: Any, high: Any) -> Any:
    parts = b.iota(bins - 1, b.element(x), start=1 / bins, step=1 / bins)
    return b.call("add.Tensor", b.call("mul.Tensor", parts, b.call("sub.Tensor", high, low)), low)


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
