"""Norms of vectors, and distances between them."""

from __future__ import annotations

from spyre_mlir.hw.formats import DL16_LARGEST, DL16_SMALLEST
from spyre_mlir.ops.annotations import INF, DType, Ints, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import dims_of, folded_shape, is_empty
from spyre_mlir.ops.helpers.slicing import joined, part, reshaped
from spyre_mlir.ops.ignored_arguments import COMPUTE_MODE
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def norm_of(b: Build, value: Value, order: float, dim: Ints, keepdim: bool) -> Value:
    """The p-norm over `dim`; orders 0, 1, 2 and both infinities have a form of their own.

    High powers leave the range of DL16 for sizes that are in it, so other orders are taken of sizes that are divided
    by the one that decides, the largest; of negative orders, the smallest is divided by them. Quotients are up to 1.
    """
    if abs(order) == INF:
        return b.call("amax" if order > 0 else "amin", abs(value), dim=dim, keepdim=keepdim)
    if order == 0:
        terms = b.cast(value.ne(0.0), like=value)
    elif order == 2:
        terms = value * value
    elif order == 1:
        terms = abs(value)
    else:
        return _of_scaled(b, abs(value), order, dim, keepdim)
    total = terms.sum(dim, keepdim=keepdim)
    return total.sqrt() if order == 2 else total


def _of_scaled(b: Build, size: Value, order: float, dim: Ints, keepdim: bool) -> Value:
    deciding = b.call("amax" if order > 0 else "amin", size, dim=dim, keepdim=True)
    unit = deciding.clamp(min=DL16_SMALLEST, max=DL16_LARGEST)  # nothing is divided by 0 or infinity
    quotient = b.call("div.Tensor", *((size, unit) if order > 0 else (unit, size)))
    terms = b.call("pow.Tensor_Scalar", quotient, exponent=abs(order))
    total = terms.sum(dim, keepdim=True)
    norm = b.call("pow.Tensor_Scalar", total, exponent=1 / order) * unit
    if order < 0:  # the quotient by 0 is infinite, which DL16 does not have
        norm = deciding.eq(0).where(0.0, norm)
    return reshaped(norm, folded_shape(size, dim, keepdim))


@ATEN.composed(aten=["linalg_vector_norm"], promote=True)
def linalg_vector_norm(
    b: Build,
    self: Value,
    *,
    ord: Number = 2,
    dim: Ints | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Value:
    """The p-norm of the vectors along `dim`, or of all elements as one vector."""
    value = b.cast(self, dtype) if dtype else self
    dims = dims_of(value, dim)
    if is_empty(value):
        return b.full(folded_shape(value, dims, keepdim), 0.0 if ord >= 0 else INF, value.element)
    return norm_of(b, value, float(ord), dims, keepdim)


@ATEN.composed(aten=["dist"], promote=True)
def dist(b: Build, self: Value, other: Value, *, p: Number = 2) -> Value:
    """The p-norm of the difference, as one vector."""
    difference = self - other
    return norm_of(b, difference, float(p), dims_of(difference, None), False)


@ATEN.composed(aten=["_cdist_forward"], promote=True, ignores=[COMPUTE_MODE])
def cdist(b: Build, x1: Value, x2: Value, *, p: Number) -> Value:
    """The distance of every row of one matrix from every row of another."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return norm_of(b, difference, float(p), (difference.rank - 1,), False)


@ATEN.composed(aten=["_pdist_forward"], promote=True)
def pdist(b: Build, self: Value, *, p: Number = 2) -> Value:
    """The distance of every row from every later one, in row-major order."""
    count = self.shape[0]
    if count < 2:
        return b.full((0,), 0.0, self.element)
    every = b.call("_cdist_forward", self, self, p=float(p), compute_mode=None)
    rows = [b.call("select.int", every, dim=0, index=n) for n in range(count - 1)]
    return joined(b, [part(b, row, 0, n + 1, count) for n, row in enumerate(rows)], 0)


ATEN.samples(
    linalg_vector_norm,
    Sample(((3, 65),), {"dim": (-1,), "keepdim": True}),
    Sample(((4, 5, 6),), {"ord": 1, "dim": (0, 2)}),
    Sample(((4, 5),), {"ord": INF}),
    Sample(((4, 5),), {"ord": -INF, "dim": (0,)}),
    Sample(((4, 5),), {"ord": 0}),
)
ATEN.samples(dist, Sample(((3, 5), (3, 5))), Sample(((3, 5), (5,)), {"p": 1}))
ATEN.samples(
    cdist,
    Sample(((4, 5), (3, 5)), {"p": 2.0, "compute_mode": None}),
    Sample(((2, 4, 5), (2, 3, 5)), {"p": 1.0, "compute_mode": 2}),
)
ATEN.samples(pdist, *(Sample(((4, 5),), {"p": p}) for p in (0.0, 1.0, 2.0, INF)), Sample(((2, 65),)))
