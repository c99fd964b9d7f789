"""Reductions over one or several dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spyre_mlir.ops.annotations import DType, Ints, Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.table import Sample

_TABLE = "published OpFunc tables of torch-spyre and the interface specification; likely"


def reduced_shape(
    self: tuple[int, ...], *, dim: Ints | None = None, keepdim: bool = False, **_: object
) -> tuple[int, ...]:
    """Shape after reducing `dim` (all dimensions if None or empty)."""
    dims = reduced_dims(len(self), dim)
    return tuple(1 if i in dims else e for i, e in enumerate(self) if keepdim or i not in dims)


def reduced_dims(rank: int, dim: Ints | None) -> tuple[int, ...]:
    """The dimensions a reduction folds, in ascending order."""
    if dim is None or len(dim) == 0:
        return tuple(range(rank))
    for d in dim:
        if not -max(rank, 1) <= d < max(rank, 1):
            raise IndexError(f"dimension {d} of a tensor of rank {rank}")
    return tuple(sorted({d % rank for d in dim})) if rank else ()


def _fold(function: Callable[..., Any], x: Lanes, dim: Ints | None, keepdim: bool) -> Lanes:
    return function(x, axis=reduced_dims(x.ndim, dim), keepdims=keepdim)


@ATEN.reduction(
    aten=["sum.dim_IntList"], opfunc="sum", fp32=True, combine="arith.addf", shape=reduced_shape, ulps=8, source=_TABLE
)
def sum(self: Lanes, *, dim: Ints | None = None, keepdim: bool = False, dtype: DType | None = None) -> Lanes:
    """The sum over `dim`."""
    return _fold(np.sum, self, dim, keepdim)


@ATEN.reduction(aten=["amax"], opfunc="max", fp32=True, combine="arith.maximumf", shape=reduced_shape, source=_TABLE)
def amax(self: Lanes, *, dim: Ints = (), keepdim: bool = False) -> Lanes:
    """The largest element over `dim`."""
    return _fold(np.max, self, dim, keepdim)


@ATEN.reduction(aten=["amin"], opfunc="min", fp32=True, combine="arith.minimumf", shape=reduced_shape, source=_TABLE)
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
