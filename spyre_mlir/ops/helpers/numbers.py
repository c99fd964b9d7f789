"""Numbers among tensors."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Number
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.value import Value


def number(b: Build, value: float, like: Value) -> Value:
    """One number as a tensor without dimensions, in the element type of another value."""
    return b.full((), value, like.element)


def scaled(value: Value, factor: Number) -> Value | Number:
    """A value times a number; numbers are multiplied here and now."""
    return value * factor if value.number is None else value.number * factor


def known(value: Value) -> Number:
    """The number that stands in a tensor's place.

    Raises:
        TypeError: it is a tensor.
    """
    if value.number is None:
        raise TypeError(f"{value!r} is a tensor, where a number is wanted")
    return value.number
