"""Elements read at computed places: weights of every element for every place, and one product.

A bilinear weight is a product of hats, max(0, 1 - distance), one per dimension: it is 0 for all but the neighbours, and
for places outside. So nothing is gathered; the cost is that of a matrix of places times elements.
"""

from __future__ import annotations

from math import prod
from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Ints, Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.nn.resampling import CUBIC
from spyre_mlir.ops.table import Sample, require

LINEAR, NEAREST, CUBICALLY = 0, 1, 2  # torch's numbers of the modes
ZEROS, BORDER, REFLECTION = 0, 1, 2  # torch's numbers of what lies outside
# Weights of one program step; beyond, the host gathers.
MOST_WEIGHTS = 2**24


def _add(b: Build, x: Any, number: float) -> Any:
    return b.call("add.Tensor", x, number) if number else x


def _mul(b: Build, x: Any, factor: float) -> Any:
    return b.call("mul.Tensor", x, factor)


def _places(b: Build, grid: Any, extent: int, outside: int, align: bool) -> Any:
    """Coordinates from -1 to 1 as places among `extent` elements, from their middle: small numbers round finely."""
    span = float(extent - 1 if align else extent)
    x = _mul(b, grid, span / 2)
    if outside == REFLECTION:
        x = _reflected(b, _add(b, x, span / 2), span, -span / 2)
    return x if outside == ZEROS else b.call("clamp", x, min=-(extent - 1) / 2, max=(extent - 1) / 2)


def _reflected(b: Build, x: Any, span: float, low: float) -> Any:
    """Distances folded into 0 … span, as between two mirrors; then shifted by `low`."""
    if span == 0:
        return _mul(b, x, 0.0)
    x = b.call("abs", x)
    turns = b.call("floor", _mul(b, x, 0.5 / span))
    x = b.call("sub.Tensor", x, _mul(b, turns, 2 * span))
    return b.call("rsub.Scalar", b.call("abs", _add(b, x, -span)), span + low)


def _weights(b: Build, places: Any, extent: int, mode: int) -> Any:
    """What every element along a dimension gives to every place: [N, places, extent]."""
    column = b.call("unsqueeze", places, dim=-1)
    own = b.iota(extent, b.element(places), start=-(extent - 1) / 2)
    distance = b.call("abs", b.call("sub.Tensor", column, own))
    if mode == LINEAR:
        return b.call("relu", b.call("rsub.Scalar", distance, 1.0))
    return _cubic(b, distance)


def _cubic(b: Build, x: Any) -> Any:
    """The weight of an element at a distance, of cubic interpolation."""
    a, square = CUBIC, b.call("mul.Tensor", x, x)
    near = _add(b, b.call("mul.Tensor", _add(b, _mul(b, x, a + 2), -(a + 3)), square), 1.0)
    far = b.call("mul.Tensor", _add(b, b.call("mul.Tensor", _add(b, _mul(b, x, a), -5 * a), x), 8 * a), x)
    far = b.call("where.self", b.call("lt.Scalar", x, 2.0), _add(b, far, -4 * a), 0.0)
    return b.call("where.self", b.call("lt.Scalar", x, 1.0), near, far)


def _extents(b: Build, input: Any, grid: Any) -> Ints:
    rank = len(b.shape(input)) - 2
    require("C1", b.shape(grid)[-1] == rank, f"{b.shape(grid)[-1]} coordinates for {rank} dimensions")
    return b.shape(input)[2:]


# A coordinate has ten bits: a place among 20 elements is off by as much as 1/50 of the way to the next, per dimension.
@ATEN.composed(aten=["grid_sampler", "grid_sampler_2d", "grid_sampler_3d"], ulps=48)
def grid_sampler(
    b: Build, input: Lanes, grid: Lanes, *, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    """The input at the places that a grid names by coordinates from -1 to 1, the last dimension first.

    Constraints:
        C1: the grid has a coordinate per spatial dimension.
    """
    extents, out = _extents(b, input, grid), b.shape(grid)[1:-1]
    batch, channels = b.shape(input)[:2]
    if interpolation_mode == NEAREST:
        raise UnsupportedError("the nearest place: of coordinates with ten significant bits it may be another")
    if interpolation_mode == CUBICALLY and padding_mode != ZEROS:
        raise UnsupportedError("cubic interpolation at the border of a grid", hint='padding_mode="zeros" is possible')
    if batch * prod(out) * prod(extents) > MOST_WEIGHTS:
        raise UnsupportedError(f"{prod(out)} places among {prod(extents)} elements, {batch} times")
    weights: Any = None
    for d, extent in enumerate(extents):
        own = b.call("select.int", grid, dim=-1, index=len(extents) - 1 - d)
        places = _places(b, b.call("reshape", own, size=(batch, prod(out))), extent, padding_mode, align_corners)
        along = _weights(b, places, extent, interpolation_mode)
        if weights is None:
            weights = along
            continue
        before = b.shape(weights)[-1]
        weights = b.call("mul.Tensor", b.call("unsqueeze", weights, dim=3), b.call("unsqueeze", along, dim=2))
        weights = b.call("reshape", weights, size=(batch, prod(out), before * extent))
    flat = b.call("reshape", input, size=(batch, channels, prod(extents)))
    made = b.call("bmm", flat, b.call("transpose.int", weights, dim0=1, dim1=2))
    return b.call("view", made, size=(batch, channels, *out))


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
