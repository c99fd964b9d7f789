"""Sums, means and products over dimensions, and sums of exponentials."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import INF, DType, Ints, Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import count_of, dims_of, folded_shape, is_empty, without
from spyre_mlir.ops.helpers.slicing import part
from spyre_mlir.ops.table import Sample


@ATEN.composed(aten=["sum"], promote=True, ulps=8)
def sum_of_all(b: Build, self: Lanes, *, dtype: DType | None = None) -> Any:
    """The sum of all elements."""
    return b.call("sum.dim_IntList", b.cast(self, dtype) if dtype else self)


@ATEN.composed(aten=["mean"], promote=True, ulps=8)
def mean_of_all(b: Build, self: Lanes, *, dtype: DType | None = None) -> Any:
    """The arithmetic mean of all elements."""
    return b.call("mean.dim", b.cast(self, dtype) if dtype else self)


@ATEN.composed(aten=["prod", "prod.dim_int"], promote=True, ulps=16)
def product(
    b: Build, self: Lanes, *, dim: Ints | None = None, keepdim: bool = False, dtype: DType | None = None
) -> Any:
    """The product over `dim`, or of all elements: halves are multiplied until one element is left.

    Truth values multiply as 64-bit integers, as all operands do that torch widens.
    """
    out = b.cast(self, dtype or ("i64" if b.is_bool(self) else b.element(self)))
    if is_empty(b, out):
        return b.full(folded_shape(b, out, dim, keepdim), 1, b.element(out))
    dims = dims_of(b, out, dim)
    for d in dims:
        out = _product_along(b, out, d)
    return without(b, out, dims, keepdim)


def _product_along(b: Build, value: Any, dim: int) -> Any:
    left: Any = None  # the elements that had no partner
    while (extent := b.shape(value)[dim]) > 1:
        half = extent // 2
        if extent % 2:
            odd = part(b, value, dim, extent - 1, extent)
            left = odd if left is None else b.call("mul.Tensor", left, odd)
        value = b.call("mul.Tensor", part(b, value, dim, 0, half), part(b, value, dim, half, 2 * half))
    return value if left is None else b.call("mul.Tensor", value, left)


def finite(b: Build, peak: Any) -> Any:
    """The largest of some elements, 0 where that is infinite.

    What is subtracted before an exponential: an infinity less itself is no number.
    """
    return b.call("where.self", b.call("eq.Tensor", b.call("abs", peak), INF), 0.0, peak)


@ATEN.composed(aten=["logsumexp"], promote=True)
def logsumexp(b: Build, self: Lanes, *, dim: Ints, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials over `dim`; the largest element is taken out first."""
    dims = dims_of(b, self, dim)
    if is_empty(b, self):
        return b.full(folded_shape(b, self, dims, keepdim), -INF, b.element(self))
    peak = finite(b, b.call("amax", self, dim=dims, keepdim=True))
    total = b.call("sum.dim_IntList", b.call("exp", b.call("sub.Tensor", self, peak)), dim=dims, keepdim=True)
    out = b.call("add.Tensor", b.call("log", total), peak)
    return without(b, out, dims, keepdim)


@ATEN.composed(aten=["nansum"], promote=True, ulps=8)
def nansum(b: Build, self: Lanes, *, dim: Ints | None = None, keepdim: bool = False, dtype: DType | None = None) -> Any:
    """The sum over `dim` of the elements that are numbers."""
    value = b.cast(self, dtype) if dtype else self
    numbers = b.call("where.self", b.call("eq.Tensor", value, value), value, 0.0)
    return b.call("sum.dim_IntList", numbers, dim=dim, keepdim=keepdim)


@ATEN.composed(aten=["count_nonzero", "count_nonzero.dim_IntList"], ulps=0)
def count_nonzero(b: Build, self: Lanes, *, dim: Ints | None = None) -> Any:
    """How many elements over `dim` are not 0."""
    truth = self if b.is_bool(self) else b.call("ne.Scalar", self, 0)
    return b.call("sum.dim_IntList", b.cast(truth, "i64"), dim=dim)


def mean_over(b: Build, value: Any, dim: Ints | None, keepdim: bool = False) -> Any:
    """The sum over `dim` divided by the count; 0 over 0 if there is nothing to fold."""
    total = b.call("sum.dim_IntList", value, dim=dim, keepdim=keepdim)
    return b.call("div.Tensor", total, float(count_of(b, value, dim)))


ATEN.samples(sum_of_all, Sample(((4, 5, 6),)), Sample(((),)))
ATEN.samples(mean_of_all, Sample(((4, 5, 6),)), Sample(((7,),)))
ATEN.samples(
    product,
    Sample(((3, 7),), {"dim": (-1,), "keepdim": True}, low=0.5),
    Sample(((4, 5, 6),), {"dim": (1,)}),
    Sample(((3, 5),), low=0.5),
    Sample(((3, 1),), {"dim": (1,)}),
    Sample(((),), {"dim": (0,)}),
)
ATEN.samples(
    logsumexp,
    Sample(((3, 65),), {"dim": (-1,), "keepdim": True}),
    Sample(((4, 5, 6),), {"dim": (0, 2)}),
    Sample(((),), {"dim": (0,)}),
)
ATEN.samples(nansum, Sample(((3, 65),), {"dim": (-1,), "keepdim": True}), Sample(((4, 5),)))
ATEN.samples(count_nonzero, Sample(((3, 65),), {"dim": (-1,)}), Sample(((4, 5),)))
