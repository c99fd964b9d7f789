"""Helpers of reductions, scans and orderings: shapes after folding, neutral numbers, positions along a dimension."""

from __future__ import annotations

from math import prod

from spyre_mlir.hw.formats import INFINITY_STAND_IN
from spyre_mlir.ops.annotations import INF, Ints
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import along
from spyre_mlir.ops.value import Value

# The largest finite half. It stands for minus infinity on the device, which has none (torch-spyre; likely).
MASKED = -INFINITY_STAND_IN
SHORT_BITS = {"i8": 8, "ui8": 8, "i16": 16}  # integers that wrap on the device as in torch


def reduced_shape(
    self: tuple[int, ...], *, dim: Ints | None = None, keepdim: bool = False, **_: object
) -> tuple[int, ...]:
    """Shape after reducing `dim` (all dimensions if None or empty)."""
    dims = reduced_dims(len(self), dim)
    return tuple(1 if i in dims else e for i, e in enumerate(self) if keepdim or i not in dims)


def reduced_dims(rank: int, dim: Ints | None) -> tuple[int, ...]:
    """The dimensions a reduction folds, in ascending order.

    Raises:
        IndexError: the tensor has no such dimension.
    """
    if dim is None or len(dim) == 0:
        return tuple(range(rank))
    for d in dim:
        if not -max(rank, 1) <= d < max(rank, 1):
            raise IndexError(f"dimension {d} of a tensor of rank {rank}")
    return tuple(sorted({d % rank for d in dim})) if rank else ()


def dims_of(value: Value, dim: Ints | int | None) -> Ints:
    """The dimensions to fold, in ascending order: all if `dim` is None or empty."""
    return reduced_dims(value.rank, (dim,) if isinstance(dim, int) else dim)


def folded_shape(value: Value, dim: Ints | int | None, keepdim: bool) -> tuple[int, ...]:
    """Shape after folding `dim`."""
    return reduced_shape(value.shape, dim=dims_of(value, dim) or None, keepdim=keepdim)


def count_of(value: Value, dim: Ints | int | None) -> int:
    """How many elements are folded into one."""
    shape = value.shape
    return prod(shape[d] for d in dims_of(value, dim))


def without(b: Build, value: Value, dims: Ints, keepdim: bool) -> Value:
    """A value that was folded over `dims`, without them unless they are kept."""
    return value if keepdim or not dims else b.call("squeeze.dims", value, dim=dims)


def is_empty(value: Value) -> bool:
    """Return whether a tensor has no elements; its reduction is the neutral number, or empty."""
    return 0 in value.shape


def positions(b: Build, shape: tuple[int, ...], dim: int) -> Value:
    """0, 1, … along one dimension of a shape."""
    return along(b.iota(shape[dim], "i64"), len(shape), dim)


def without_nan(value: Value, stand_in: float = INF) -> Value:
    """A value with infinity, or another number, in place of NaN, so that comparisons order it."""
    return value.ne(value).where(stand_in, value) if value.is_float else value


def or_nan(b: Build, truth: Value, value: Value) -> Value:
    """A truth value, or 1 where a value is NaN."""
    return b.call("logical_or", truth, value.ne(value)) if value.is_float else truth


def comparable(b: Build, value: Value) -> Value:
    """A value as numbers: truth values have no order of their own."""
    return b.cast(value, "f32") if value.is_bool else value
