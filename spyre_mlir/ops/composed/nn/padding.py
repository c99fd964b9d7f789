"""Borders around a tensor: of one number, or made of the tensor itself."""

from __future__ import annotations

from collections.abc import Callable

from spyre_mlir.ops.annotations import Ints, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, padded, taken
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["constant_pad_nd"], promote=True, ulps=1)
def constant_pad_nd(b: Build, self: Value, *, pad: Ints, value: Number = 0) -> Value:
    """`self` with a number around it; the pairs of `pad` start at the last dimension, negative ones cut."""
    dims = range(self.rank)
    for at, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        self = padded(b, self, dims[-at], before, after, value)
    return self


def _bordered(b: Build, x: Value, pad: Ints, border: Callable[[Value, int, int, bool], list[Value]]) -> Value:
    """`x` with a border along its last dimensions; the pairs of `pad` start at the last, negative ones cut.

    `border(x, dim, count, at the end?)` gives the parts of a border in order.
    """
    for at, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        dim = x.rank - at
        x = padded(b, x, dim, min(0, before), min(0, after))
        first = border(x, dim, before, False) if before > 0 else []
        last = border(x, dim, after, True) if after > 0 else []
        x = joined(b, [*first, x, *last], dim)
    return x


@ATEN.composed(aten=["reflection_pad1d", "reflection_pad2d", "reflection_pad3d"], ulps=0)
def reflection_pad(b: Build, self: Value, *, padding: Ints) -> Value:
    """A border that mirrors the elements beside it; the outermost element is not repeated.

    Constraints:
        C1: the border is smaller than the dimension.
    """

    def mirrored(x: Value, dim: int, count: int, end: bool) -> list[Value]:
        extent = x.shape[dim]
        require("C1", count < extent, f"a border of {count} around {extent} elements")
        places = range(extent - 2, extent - 2 - count, -1) if end else range(count, 0, -1)
        return [taken(b, x, dim, place, 1) for place in places]

    return _bordered(b, self, padding, mirrored)


@ATEN.composed(aten=["replication_pad1d", "replication_pad2d", "replication_pad3d"], ulps=0)
def replication_pad(b: Build, self: Value, *, padding: Ints) -> Value:
    """A border that repeats the outermost element; a negative one may cut all there is, and the edges stay."""
    for at, (before, after) in enumerate(zip(padding[::2], padding[1::2], strict=True), start=1):
        shape = self.shape
        dim = len(shape) - at
        extent, kept = shape[dim] + before + after, shape[dim] + min(0, before) + min(0, after)
        parts = [taken(b, self, dim, max(0, -before), kept)] if kept > 0 else []
        first = _repeated(b, self, dim, 0, min(before, extent))
        last = _repeated(b, self, dim, shape[dim] - 1, min(after, extent))
        self = joined(b, [*first, *parts, *last], dim)
    return self


def _repeated(b: Build, x: Value, dim: int, place: int, count: int) -> list[Value]:
    """One element of a dimension, `count` times; nothing where that is not positive."""
    shape = x.shape
    return [taken(b, x, dim, place, 1).expand(*shape[:dim], count, *shape[dim + 1 :])] if count > 0 else []


@ATEN.composed(aten=["_pad_circular"], ulps=0)
def pad_circular(b: Build, self: Value, *, pad: Ints) -> Value:
    """A border that goes on at the other end.

    Constraints:
        C1: the border is no larger than the dimension.
    """
    for at, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        dim = self.rank - at
        self = padded(b, self, dim, min(0, before), min(0, after))
        extent = self.shape[dim]
        require("C1", max(before, after) <= extent, f"a border of {max(before, after)} around {extent} elements")
        first = [taken(b, self, dim, extent - before, before)] if before > 0 else []
        last = [taken(b, self, dim, 0, after)] if after > 0 else []
        self = joined(b, [*first, self, *last], dim)
    return self


ATEN.samples(
    constant_pad_nd, Sample(((3, 5),), {"pad": (1, 2), "value": 0.5}), Sample(((3, 5),), {"pad": (-1, 2, 2, 0)})
)
for _entry in (reflection_pad, replication_pad):
    ATEN.samples(
        _entry,
        Sample(((2, 3, 7),), {"padding": (2, 1)}),
        Sample(((3, 5, 6),), {"padding": (1, 0, 2, 3)}),
        Sample(((1, 2, 3, 4, 5),), {"padding": (1, 2, 0, 1, 2, 0)}),
    )
ATEN.samples(replication_pad, Sample(((2, 3, 4, 4),), {"padding": (5, -4, -4, 5)}))
ATEN.samples(reflection_pad, Sample(((2, 3, 4),), {"padding": (4, 0)}, breaks="C1"))
ATEN.samples(pad_circular, Sample(((2, 3),), {"pad": (4, 0)}, breaks="C1"))
ATEN.samples(pad_circular, Sample(((3, 5, 6),), {"pad": (2, 1)}), Sample(((1, 2, 4, 5),), {"pad": (1, -1, 4, 0)}))
