"""Sums, means and products over dimensions, and sums of exponentials."""

from __future__ import annotations

from spyre_mlir.ops.annotations import INF, DType, Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import count_of, dims_of, folded_shape, is_empty, without
from spyre_mlir.ops.helpers.slicing import part
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["sum"], promote=True, ulps=8)
def sum_of_all(b: Build, self: Value, *, dtype: DType | None = None) -> Value:
    """The sum of all elements."""
    return (b.cast(self, dtype) if dtype else self).sum()


@ATEN.composed(aten=["mean"], promote=True, ulps=8)
def mean_of_all(b: Build, self: Value, *, dtype: DType | None = None) -> Value:
    """The arithmetic mean of all elements."""
    return b.call("mean.dim", b.cast(self, dtype) if dtype else self)


@ATEN.composed(aten=["prod", "prod.dim_int"], promote=True, ulps=16)
def product(
    b: Build, self: Value, *, dim: Ints | None = None, keepdim: bool = False, dtype: DType | None = None
) -> Value:
    """The product over `dim`, or of all elements: halves are multiplied until one element is left.

    Truth values multiply as 64-bit integers, as all operands do that torch widens.
    """
    out = b.cast(self, dtype or ("i64" if self.is_bool else self.element))
    if is_empty(out):
        return b.full(folded_shape(out, dim, keepdim), 1, out.element)
    dims = dims_of(out, dim)
    for d in dims:
        out = _product_along(b, out, d)
    return without(b, out, dims, keepdim)


def _product_along(b: Build, value: Value, dim: int) -> Value:
    left: Value | None = None  # the elements that had no partner
    while (extent := value.shape[dim]) > 1:
        half = extent // 2
        if extent % 2:
            odd = part(b, value, dim, extent - 1, extent)
            left = odd if left is None else left * odd
        value = part(b, value, dim, 0, half) * part(b, value, dim, half, 2 * half)
    return value if left is None else value * left


def finite(b: Build, peak: Value) -> Value:
    """The largest of some elements, 0 where that is infinite.

    What is subtracted before an exponential: an infinity less itself is no number.
    """
    return b.call("eq.Tensor", abs(peak), INF).where(0.0, peak)


@ATEN.composed(aten=["logsumexp"], promote=True)
def logsumexp(b: Build, self: Value, *, dim: Ints, keepdim: bool = False) -> Value:
    """The logarithm of the sum of exponentials over `dim`; the largest element is taken out first."""
    dims = dims_of(self, dim)
    if is_empty(self):
        return b.full(folded_shape(self, dims, keepdim), -INF, self.element)
    peak = finite(b, self.amax(dims, keepdim=True))
    total = (self - peak).exp().sum(dims, keepdim=True)
    return without(b, total.log() + peak, dims, keepdim)


@ATEN.composed(aten=["nansum"], promote=True, ulps=8)
def nansum(
    b: Build, self: Value, *, dim: Ints | None = None, keepdim: bool = False, dtype: DType | None = None
) -> Value:
    """The sum over `dim` of the elements that are numbers."""
    value = b.cast(self, dtype) if dtype else self
    return value.eq(value).where(value, 0.0).sum(dim, keepdim=keepdim)


@ATEN.composed(aten=["count_nonzero", "count_nonzero.dim_IntList"], ulps=0)
def count_nonzero(b: Build, self: Value, *, dim: Ints | None = None) -> Value:
    """How many elements over `dim` are not 0."""
    truth = self if self.is_bool else self.ne(0)
    return b.cast(truth, "i64").sum(dim)


def mean_over(value: Value, dim: Ints | None, keepdim: bool = False) -> Value:
    """The sum over `dim` divided by the count; 0 over 0 if there is nothing to fold."""
    return value.sum(dim, keepdim=keepdim) / float(count_of(value, dim))


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
