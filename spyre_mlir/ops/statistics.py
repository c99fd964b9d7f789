"""Reductions made of several: extremes in pairs, variances."""

from __future__ import annotations

from math import prod
from typing import Any

from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.lanes import Ints, Lanes, Number
from spyre_mlir.ops.reduction import reduced_dims
from spyre_mlir.ops.table import Sample


@ATEN.composed(aten=["aminmax"], ulps=1)
def aminmax(b: Build, self: Lanes, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element over `dim`, or over all dimensions."""
    dims = () if dim is None else (dim,)
    return b.call("amin", self, dim=dims, keepdim=keepdim), b.call("amax", self, dim=dims, keepdim=keepdim)


@ATEN.composed(aten=["var.correction"])
def var(
    b: Build, self: Lanes, *, dim: Ints | None = None, correction: Number | None = None, keepdim: bool = False
) -> Any:
    """The mean squared distance from the mean over `dim`; the count is lessened by `correction`, 1 if not given."""
    shape = b.shape(self)
    count = prod(shape[d] for d in reduced_dims(len(shape), dim))
    centred = b.call("sub.Tensor", self, b.call("mean.dim", self, dim=dim, keepdim=True))
    total = b.call("sum.dim_IntList", b.call("mul.Tensor", centred, centred), dim=dim, keepdim=keepdim)
    return b.call("div.Tensor", total, float(max(0.0, count - (1 if correction is None else correction))))


ATEN.samples(aminmax, Sample(((3, 65),), {"dim": -1, "keepdim": True}), Sample(((4, 5),)))
ATEN.samples(var, Sample(((3, 65),), {"dim": (1,)}), Sample(((4, 5, 6),), {"correction": 0, "keepdim": True}))
