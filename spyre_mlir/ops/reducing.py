"""What reductions, scans and orderings share: shapes after folding, neutral numbers, positions along a dimension."""

from __future__ import annotations

from math import prod
from typing import Any

from spyre_mlir.ops.build import Build
from spyre_mlir.ops.lanes import INF, Ints
from spyre_mlir.ops.reduction import reduced_dims, reduced_shape

FLOATS = ("f16", "bf16", "f32", "f64")
SHORT_BITS = {"i8": 8, "ui8": 8, "i16": 16}  # integers that wrap on the device as in torch


def is_float(b: Build, value: Any) -> bool:
    """Whether a value holds floating-point numbers."""
    return b.element(value) in FLOATS


def dims_of(b: Build, value: Any, dim: Ints | int | None) -> Ints:
    """The dimensions to fold, in ascending order: all if `dim` is None or empty."""
    return reduced_dims(len(b.shape(value)), (dim,) if isinstance(dim, int) else dim)


def folded_shape(b: Build, value: Any, dim: Ints | int | None, keepdim: bool) -> tuple[int, ...]:
    """Shape after folding `dim`."""
    return reduced_shape(b.shape(value), dim=dims_of(b, value, dim) or None, keepdim=keepdim)


def count_of(b: Build, value: Any, dim: Ints | int | None) -> int:
    """How many elements are folded into one."""
    shape = b.shape(value)
    return prod(shape[d] for d in dims_of(b, value, dim))


def is_empty(b: Build, value: Any, dim: Ints | int | None) -> bool:
    """Whether a tensor has no elements: what folding gives is then neutral, or nothing at all."""
    return 0 in b.shape(value)


def along(b: Build, vector: Any, rank: int, dim: int) -> Any:
    """A vector that runs along one dimension of a tensor of `rank`, and broadcasts over the others."""
    return b.call("view", vector, size=(-1, *(1,) * (rank - dim % rank - 1)))


def positions(b: Build, shape: tuple[int, ...], dim: int) -> Any:
    """0, 1, … along one dimension of a shape."""
    return along(b, b.iota(shape[dim], "i64"), len(shape), dim)


def without_nan(b: Build, value: Any, stand_in: float = INF) -> Any:
    """A value with infinity, or another number, in place of what is not a number, so that comparisons order it."""
    if not is_float(b, value):
        return value
    return b.call("where.self", b.call("ne.Tensor", value, value), stand_in, value)


def comparable(b: Build, value: Any) -> Any:
    """A value as numbers: truth values have no order of their own."""
    return b.cast(value, "f32") if b.is_bool(value) else value


def part(b: Build, value: Any, dim: int, start: int, end: int, step: int = 1) -> Any:
    """A range of one dimension."""
    return b.call("slice.Tensor", value, dim=dim, start=start, end=end, step=step)
