"""Numbers among tensors."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import Number
from spyre_mlir.ops.build import Build


def number(b: Build, value: float, like: Any) -> Any:
    """One number as a tensor without dimensions, in the element type of another value."""
    return b.full((), value, b.element(like))


def scaled(b: Build, value: Any, factor: Number) -> Any:
    """A value times a number; numbers are multiplied here and now."""
    return value * factor if isinstance(value, int | float) else b.call("mul.Tensor", value, factor)
