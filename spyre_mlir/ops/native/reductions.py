"""Reductions over one or several dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spyre_mlir.ops.annotations import Ints, Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import reduced_dims, reduced_shape
from spyre_mlir.ops.ignored_arguments import DTYPE
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

_TABLE = "published OpFunc tables of torch-spyre and the interface specification; likely"


def _fold(function: Callable[..., Any], x: Lanes, dim: Ints | None, keepdim: bool) -> Lanes:
    return function(x, axis=reduced_dims(x.ndim, dim), keepdims=keepdim)


def _of_truth(b: Build, overload: str, self: Value, dim: Ints, keepdim: bool) -> Value | None:
    if not self.is_bool:
        return None
    return b.call(overload, b.cast(self, "f32"), dim=dim, keepdim=keepdim).ne(0.0)


def _amax(b: Build, self: Value, *, dim: Ints, keepdim: bool) -> Value | None:
    return _of_truth(b, "amax", self, dim, keepdim)


def _amin(b: Build, self: Value, *, dim: Ints, keepdim: bool) -> Value | None:
    return _of_truth(b, "amin", self, dim, keepdim)


@ATEN.reduction(
    aten=["sum.dim_IntList"],
    opfunc="sum",
    fp32=True,
    combine="arith.addf",
    shape=reduced_shape,
    ulps=8,
    source=_TABLE,
    ignores=[DTYPE],
)
def sum(self: Lanes, *, dim: Ints | None = None, keepdim: bool = False) -> Lanes:
    """The sum over `dim`."""
    return _fold(np.sum, self, dim, keepdim)


@ATEN.reduction(
    aten=["amax"],
    opfunc="max",
    fp32=True,
    combine="arith.maximumf",
    shape=reduced_shape,
    source=_TABLE,
    decompose=_amax,
)
def amax(self: Lanes, *, dim: Ints = (), keepdim: bool = False) -> Lanes:
    """The largest element over `dim`."""
    return _fold(np.max, self, dim, keepdim)


@ATEN.reduction(
    aten=["amin"],
    opfunc="min",
    fp32=True,
    combine="arith.minimumf",
    shape=reduced_shape,
    source=_TABLE,
    decompose=_amin,
)
def amin(self: Lanes, *, dim: Ints = (), keepdim: bool = False) -> Lanes:
    """The smallest element over `dim`."""
    return _fold(np.min, self, dim, keepdim)


for _entry in (sum, amax, amin):
    ATEN.samples(
        _entry,
        Sample(((3, 65),), {"dim": (-1,), "keepdim": True}),
        Sample(((4, 5, 6),), {"dim": (1,)}),
        Sample(((4, 5, 6),), {"dim": (0, 2)}),
    )
