"""Matrices that take a dimension to another size: weights of old elements in new ones, by the name of a curve."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Ints, Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.ignored_arguments import DTYPE
from spyre_mlir.ops.table import Sample, require

CUBIC, CUBIC_SMOOTHED = -0.75, -0.5  # the free coefficient of cubic interpolation, as torch chooses it
CURVES = ("linear", "cubic", "linear_smoothed", "cubic_smoothed")
FIXED = "_fixed"
MODES = ("nearest", *CURVES, *(curve + FIXED for curve in CURVES), "taps", "turned")
FIXED_BITS = 15  # of a weight with its sign, as torch has them for bytes


def _hat(x: Lanes) -> Lanes:
    return np.maximum(0.0, 1.0 - np.abs(x))


def _cubic(x: Lanes, a: float) -> Lanes:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def resample_weights(size: Ints, mode: str, scale: float, offset: float) -> Lanes:
    """Weights of old elements (columns) in new elements (rows); new element i is at scale * i + offset."""
    rows, columns = size
    if mode.endswith(FIXED):
        return _in_fixed_point(resample_weights(size, mode.removesuffix(FIXED), scale, offset))
    place = scale * np.arange(rows) + offset
    if mode.endswith("_smoothed"):
        return _smoothed(rows, columns, mode, scale)
    if mode == "taps":
        return _taps(rows, columns, int(scale))
    if mode == "turned":
        return _turned(rows, int(scale))
    if mode == "nearest":
        return _spread_over(np.clip(np.floor(place), 0, columns - 1)[:, None], np.ones((rows, 1)), columns)
    if mode == "linear":
        place = np.clip(place, 0, columns - 1)
    below = np.floor(place)[:, None]
    near = below + (np.arange(0, 2) if mode == "linear" else np.arange(-1, 3))
    distance = near - place[:, None]
    weights = _hat(distance) if mode == "linear" else _cubic(distance, CUBIC)
    return _spread_over(np.clip(near, 0, columns - 1), weights, columns)


def _in_fixed_point(weights: Lanes) -> Lanes:
    """Weights as torch rounds them for bytes: with as many bits behind the point as the largest one leaves."""
    bits = 0
    while int(0.5 + weights.max() * 2 ** (bits + 1)) < 2**FIXED_BITS:
        bits += 1
    return np.trunc(weights * 2**bits + np.copysign(0.5, weights)) / 2**bits


def _taps(rows: int, columns: int, scale: int) -> Lanes:
    """Ones where the taps of windows meet elements: of all windows the first tap, then of all the second one."""
    places = rows // scale
    tap, place = np.divmod(np.arange(rows), places)
    return np.equal.outer(place * scale + tap, np.arange(columns)).astype(np.float64)


def _turned(rows: int, distance: int) -> Lanes:
    """One number a row: -1 for the element that is so far behind, or 1 for the one that is so far before."""
    at = np.arange(rows)
    second, paired = at // distance % 2 == 1, at < rows - rows % (2 * distance)
    signs = np.where(second, 1.0, -1.0) * paired
    return signs[:, None] * np.equal.outer(np.where(second, at - distance, at + distance), at)


def _spread_over(near: Lanes, weights: Lanes, columns: int) -> Lanes:
    """Weights of numbered columns as rows of a matrix; weights of one column add up."""
    out = np.zeros((len(near), columns))
    np.add.at(out, (np.arange(len(near))[:, None], near.astype(np.int64)), weights)
    return out


def _smoothed(rows: int, columns: int, mode: str, scale: float) -> Lanes:
    """Windows as wide as the scale, so that nothing between the new elements is lost (torch: antialias)."""
    radius, wide = (1.0 if mode.startswith("linear") else 2.0), max(scale, 1.0)
    centre = scale * (np.arange(rows) + 0.5)
    first = np.maximum(np.floor(centre - radius * wide + 0.5), 0)[:, None]
    last = np.minimum(np.floor(centre + radius * wide + 0.5), columns)[:, None]
    at = np.arange(columns)
    x = (at - centre[:, None] + 0.5) / wide
    weights = np.where((at >= first) & (at < last), _hat(x) if radius == 1.0 else _cubic(x, CUBIC_SMOOTHED), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _resample_shape(*, size: Ints, **_: object) -> tuple[int, ...]:
    require("C1", len(size) == 2, f"size {size}, expected two extents")
    return size


@ATEN.creation(aten=["spyre::resample"], shape=_resample_shape, ignores=[DTYPE])
def resample(*, size: Ints, mode: str, scale: float, offset: float = 0.0) -> Lanes:
    """The matrix that takes a dimension of `size[1]` elements to one of `size[0]`.

    New element i lies at place scale * i + offset of the old ones. The mode says how it is made from those around
    it: "nearest", "linear", "cubic", and "linear_smoothed" and "cubic_smoothed", whose windows widen with the scale.
    With "_fixed" behind one of the last four, its weights are in fixed point, as torch has them for bytes.
    With "taps", windows of `scale` elements lie side by side; the new elements are the first ones of all windows, then
    the second ones, and so on, 0 where there is no old element. With "turned", of two elements so far apart the second
    one comes to the place of the first with its sign changed, and the first one to the place of the second; elements
    behind the last whole pair are 0.

    Constraints:
        C1: size has two extents.
        C2: mode is one of these.
        C3: windows of "taps" and distances of "turned" are whole numbers of elements, without an offset.
        C4: "turned" elements are as many before as after, and at least two distances.
    """
    require("C2", mode in MODES, f'mode "{mode}", expected one of {", ".join(MODES)}')
    whole = scale >= 1 and scale == int(scale)
    require(
        "C3",
        mode not in ("taps", "turned") or (whole and not offset),
        f"{mode} of {scale} elements at {offset}, expected whole ones at 0",
    )
    pairs = mode != "turned" or (size[0] == size[1] and size[0] >= 2 * int(scale))
    require("C4", pairs, f"turned elements: {size[1]} to {size[0]}, in pairs {scale} apart")
    return resample_weights(size, mode, scale, offset)


ATEN.samples(resample, Sample((), {"size": (2, 3, 4), "mode": "linear", "scale": 1.0, "offset": 0.0}, breaks="C1"))
