"""The largest and the smallest element, and where it is."""

from __future__ import annotations

from math import prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import comparable, or_nan, positions
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def where_first(b: Build, overload: str, self: Value, dim: int | None, keepdim: bool) -> Value:
    """Position of the first extreme element: `overload` is amax or amin, and NaN wins.

    Without `dim` the position counts all elements in row-major order.

    Raises:
        UnsupportedError: the tensor has no element.
    """
    shape = self.shape
    if 0 in shape:
        raise UnsupportedError(f"the position of an extreme element of a tensor of shape {shape}")
    if not shape:
        return b.full((), 0, "i64")
    number, dims = comparable(b, self), () if dim is None else (dim,)
    best = b.call(overload, number, dim=dims, keepdim=True)
    # Where the best is not a number it equals none.
    hit = or_nan(b, number.eq(best), number)
    if dim is None:
        count = prod(shape)
        place = b.iota(count, "i64").view(*shape)
    else:
        place, count = positions(b, shape, dim), shape[dim]
    # The smallest position wins; those of other elements lie behind all.
    found = hit.where(place, b.full((), count, "i64"))
    return found.amin(dims, keepdim=keepdim)


def _check_numbers(self: Value, name: str) -> None:
    if self.is_bool:
        raise UnsupportedError(
            f"{name} of truth values, which eager refuses", hint="convert them to integers first: x.int()"
        )


@ATEN.composed(aten=["argmax"], ulps=0)
def argmax(b: Build, self: Value, *, dim: int | None = None, keepdim: bool = False) -> Value:
    """Position of the first largest element along `dim`, or among all elements in row-major order."""
    _check_numbers(self, "argmax")
    return where_first(b, "amax", self, dim, keepdim)


@ATEN.composed(aten=["argmin"], ulps=0)
def argmin(b: Build, self: Value, *, dim: int | None = None, keepdim: bool = False) -> Value:
    """Position of the first smallest element along `dim`, or among all elements in row-major order."""
    _check_numbers(self, "argmin")
    return where_first(b, "amin", self, dim, keepdim)


@ATEN.composed(aten=["max"], ulps=0)
def max_of_all(self: Value) -> Value:
    """The largest of all elements."""
    return self.amax()


@ATEN.composed(aten=["min"], ulps=0)
def min_of_all(self: Value) -> Value:
    """The smallest of all elements."""
    return self.amin()


@ATEN.composed(aten=["max.dim"], ulps=0)
def max_along(b: Build, self: Value, *, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """The largest element along `dim`, and the position of the first such element."""
    return self.amax(dim, keepdim=keepdim), where_first(b, "amax", self, dim, keepdim)


@ATEN.composed(aten=["min.dim"], ulps=0)
def min_along(b: Build, self: Value, *, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """The smallest element along `dim`, and the position of the first such element."""
    return self.amin(dim, keepdim=keepdim), where_first(b, "amin", self, dim, keepdim)


for _entry in (argmax, argmin, max_along, min_along):
    ATEN.samples(
        _entry,
        Sample(((3, 65),), {"dim": -1, "keepdim": True}),
        Sample(((4, 5, 6),), {"dim": 1}),
        Sample(((),), {"dim": 0}),
    )
for _entry in (argmax, argmin):
    ATEN.samples(_entry, Sample(((4, 5, 6),)), Sample(((4, 7),), {"keepdim": True}))
for _entry in (max_of_all, min_of_all):
    ATEN.samples(_entry, Sample(((4, 5, 6),)), Sample(((),)))
