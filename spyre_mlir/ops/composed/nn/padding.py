"""Borders around a tensor: of one number, or made of the tensor itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spyre_mlir.ops.annotations import Ints, Lanes, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, padded, taken
from spyre_mlir.ops.table import Sample, require


@ATEN.composed(aten=["constant_pad_nd"], promote=True, ulps=1)
def constant_pad_nd(b: Build, self: Lanes, *, pad: Ints, value: Number = 0) -> Any:
    """`self` with a number around it; the pairs of `pad` start at the last dimension, negative ones cut."""
    dims = range(len(b.shape(self)))
    for at, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        self = padded(b, self, dims[-at], before, after, value)
    return self


def _bordered(b: Build, x: Any, pad: Ints, border: Callable[[Any, int, int, bool], list[Any]]) -> Any:
    """`x` with a border along its last dimensions; the pairs of `pad` start at the last, negative ones cut.

    `border(x, dim, count, at the end?)` gives the parts of a border in order.
    """
    for at, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        dim = len(b.shape(x)) - at
        x = padded(b, x, dim, min(0, before), min(0, after))
        first: list[Any] = border(x, dim, before, False) if before > 0 else []
        last: list[Any] = border(x, dim, after, True) if after > 0 else []
        x = joined(b, [*first, x, *last], dim)
    return x


@ATEN.composed(aten=["reflection_pad1d", "reflection_pad2d", "reflection_pad3d"], ulps=0)
def reflection_pad(b: Build, self: Lanes, *, padding: Ints) -> Any:
    """A border that mirrors the elements beside it; the outermost element is not repeated.

    Constraints:
        C1: the border is smaller than the dimension.
    """

    def mirrored(x: Any, dim: int, count: int, end: bool) -> list[Any]:
        extent = b.shape(x)[dim]
        require("C1", count < extent, f"a border of {count} around {extent} elements")
        places = range(extent - 2, extent - 2 - count, -1) if end else range(count, 0, -1)
        return [taken(b, x, dim, place, 1) for place in places]

    return _bordered(b, self, padding, mirrored)


@ATEN.composed(aten=["replication_pad1d", "replication_pad2d", "replication_pad3d"], ulps=0)
def replication_pad(b: Build, self: Lanes, *, padding: Ints) -> Any:
    """A border that repeats the outermost element; a negative one may cut all there is, and the edges stay."""
    for at, (before, after) in enumerate(zip(padding[::2], padding[1::2], strict=True), start=1):
        shape = b.shape(self)
        dim = len(shape) - at
        extent, kept = shape[dim] + before + after, shape[dim] + min(0, before) + min(0, after)
        parts: list[Any] = [taken(b, self, dim, max(0, -before), kept)] if kept > 0 else []
        first, last = (
            [b.call("expand", taken(b, self, dim, place, 1), size=(*shape[:dim], count, *shape[dim + 1 :]))]
            if count > 0
            else list[Any]()
            for place, count in ((0, min(before, extent)), (shape[dim] - 1, min(after, extent)))
        )
        self = joined(b, [*first, *parts, *last], dim)
    return self


@ATEN.composed(aten=["_pad_circular"], ulps=0)
def pad_circular(b: Build, self: Lanes, *, pad: Ints) -> Any:
    """A border that goes on at the other end.

    Constraints:
        C1: the border is no larger than the dimension.
    """
    for at, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        dim = len(b.shape(self)) - at
        self = padded(b, self, dim, min(0, before), min(0, after))
        extent = b.shape(self)[dim]
        require("C1", max(before, after) <= extent, f"a border of {max(before, after)} around {extent} elements")
        first: list[Any] = [taken(b, self, dim, extent - before, before)] if before > 0 else []
        last: list[Any] = [taken(b, self, dim, 0, after)] if after > 0 else []
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
