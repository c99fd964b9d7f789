"""Elements read at computed places: weights of every element for every place, and one product.

A bilinear weight is a product of hats, max(0, 1 - distance), one per dimension: it is 0 for all but the neighbours, and
for places outside. So nothing is gathered; the cost is that of a matrix of places times elements.
"""

from __future__ import annotations

from functools import reduce
from math import prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.native.resample import CUBIC
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value

LINEAR, NEAREST, CUBICALLY = 0, 1, 2  # torch's numbers of the modes
ZEROS, BORDER, REFLECTION = 0, 1, 2  # torch's numbers of what lies outside
# Weights of one program step; beyond, the host gathers.
MOST_WEIGHTS = 2**24


def _add(x: Value, number: float) -> Value:
    return x + number if number else x


def _places(b: Build, grid: Value, extent: int, outside: int, align: bool) -> Value:
    """Coordinates from -1 to 1 as places among `extent` elements, from their middle: small numbers round finely."""
    span = float(extent - 1 if align else extent)
    x = grid * (span / 2)
    if outside == REFLECTION:
        x = _reflected(b, _add(x, span / 2), span, -span / 2)
    return x if outside == ZEROS else x.clamp(min=-(extent - 1) / 2, max=(extent - 1) / 2)


def _reflected(b: Build, x: Value, span: float, low: float) -> Value:
    """Distances folded into 0 … span, as between two mirrors; then shifted by `low`."""
    if span == 0:
        return x * 0.0
    x = abs(x)
    x = x - (x * (0.5 / span)).floor() * (2 * span)
    return b.call("rsub.Scalar", abs(_add(x, -span)), span + low)


def _weights(b: Build, places: Value, extent: int, mode: int) -> Value:
    """What every element along a dimension gives to every place: [N, places, extent]."""
    column = places.unsqueeze(-1)
    own = b.iota(extent, places.element, start=-(extent - 1) / 2)
    distance = abs(column - own)
    return b.call("relu", b.call("rsub.Scalar", distance, 1.0)) if mode == LINEAR else _cubic(distance)


def _cubic(x: Value) -> Value:
    """The weight of an element at a distance, of cubic interpolation."""
    a, square = CUBIC, x * x
    near = _add(_add(x * (a + 2), -(a + 3)) * square, 1.0)
    far = _add(_add(x * a, -5 * a) * x, 8 * a) * x
    far = x.lt(2.0).where(_add(far, -4 * a), 0.0)
    return x.lt(1.0).where(near, far)


def _outer(before: Value, along: Value) -> Value:
    """The weights over some dimensions and one more: [N, places, elements]."""
    batch, places, count = before.shape
    return (before.unsqueeze(3) * along.unsqueeze(2)).reshape(batch, places, count * along.shape[-1])


def _extents(input: Value, grid: Value) -> Ints:
    rank = input.rank - 2
    require("C1", grid.shape[-1] == rank, f"{grid.shape[-1]} coordinates for {rank} dimensions")
    return input.shape[2:]


# A coordinate has ten bits: a place among 20 elements is off by as much as 1/50 of the way to the next, per dimension.
@ATEN.composed(aten=["grid_sampler", "grid_sampler_2d", "grid_sampler_3d"], ulps=48)
def grid_sampler(
    b: Build, input: Value, grid: Value, *, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """The input at the places that a grid names by coordinates from -1 to 1, the last dimension first.

    Constraints:
        C1: the grid has a coordinate per spatial dimension.
    """
    extents, out = _extents(input, grid), grid.shape[1:-1]
    batch, channels = input.shape[:2]
    if interpolation_mode == NEAREST:
        raise UnsupportedError("the nearest place: of coordinates with ten significant bits it may be another")
    if interpolation_mode == CUBICALLY and padding_mode != ZEROS:
        raise UnsupportedError("cubic interpolation at the border of a grid", hint='padding_mode="zeros" is possible')
    if batch * prod(out) * prod(extents) > MOST_WEIGHTS:
        raise UnsupportedError(f"{prod(out)} places among {prod(extents)} elements, {batch} times")

    def weights_along(d: int) -> Value:
        own = b.call("select.int", grid, dim=-1, index=len(extents) - 1 - d)
        places = _places(b, own.reshape(batch, prod(out)), extents[d], padding_mode, align_corners)
        return _weights(b, places, extents[d], interpolation_mode)

    weights = reduce(_outer, map(weights_along, range(len(extents))))
    flat = input.reshape(batch, channels, prod(extents))
    return b.call("bmm", flat, weights.transpose(1, 2)).view(batch, channels, *out)


_IMAGE, _CUBE = ((2, 3, 4, 5), (2, 3, 2, 2)), ((1, 2, 3, 4, 2), (1, 2, 2, 1, 3))
_FACTS = {"interpolation_mode": LINEAR, "padding_mode": ZEROS, "align_corners": False}
ATEN.samples(
    grid_sampler,
    Sample(_IMAGE, _FACTS),
    Sample(_IMAGE, _FACTS | {"padding_mode": BORDER, "align_corners": True}),
    Sample(_IMAGE, _FACTS | {"padding_mode": REFLECTION}),
    Sample(_IMAGE, _FACTS | {"padding_mode": REFLECTION, "align_corners": True}),
    Sample(_IMAGE, _FACTS | {"interpolation_mode": CUBICALLY}),
    Sample(_CUBE, _FACTS | {"align_corners": True}),
    Sample(((2, 3, 4, 5), (2, 3, 2, 3)), _FACTS, breaks="C1"),
)
