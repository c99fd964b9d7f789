"""Other sizes of an image: every dimension is a product with a fixed matrix of weights, or a choice of slices."""

from __future__ import annotations

import struct
from math import floor, prod

from spyre_mlir.ops.annotations import Floats, Ints, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, taken, widened
from spyre_mlir.ops.ignored_arguments import DTYPE
from spyre_mlir.ops.table import OpEntry, Sample, require
from spyre_mlir.ops.value import Value

# Slices that a nearest-neighbour choice along one dimension may take; a product with zeros and ones is cheaper then.
MOST_SLICES = 64
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


def _single(x: float) -> float:
    """A number as float32 holds it: torch computes scales with that."""
    return struct.unpack("f", struct.pack("f", x))[0]


def _along(b: Build, x: Value, at: int, matrix: Value) -> Value:
    """The product of a matrix with dimension `at` of a tensor."""
    shape = x.shape
    behind, size = prod(shape[at + 1 :]), matrix.shape[0]
    if behind == 1:
        rows = x.reshape(prod(shape[:at]), shape[at])
        made = b.call("linear", rows, matrix)
    else:
        rows = x.reshape(prod(shape[:at]), shape[at], behind)
        made = b.call("linear", rows.transpose(1, 2), matrix).transpose(1, 2)
    return made.reshape(*shape[:at], size, *shape[at + 1 :])


def _interpolated(b: Build, x: Value, sizes: Ints, mode: str, align: bool, scales: tuple[Number | None, ...]) -> Value:
    rank, element, whole = len(sizes), x.element, x.is_whole
    if whole:  # bytes: torch has no other integers here
        x, mode = b.cast(x, "f32"), mode + FIXED
    for d in reversed(range(rank)):
        at, new = x.rank - rank + d, sizes[d]
        old, given = x.shape[at], scales[d]
        require("C1", new > 0, f"a size of {new}")
        if align:
            scale, offset = ((old - 1) / (new - 1) if new > 1 else 0.0), 0.0
        else:
            scale = 1.0 / given if given else old / new
            offset = 0.5 * scale - 0.5
        # Only the cubic curve follows a factor that does not change the size.
        if new != old or (mode == "cubic" and (scale, offset) != (1.0, 0.0)):
            x = _along(b, x, at, _matrix(b, x, (new, old), mode, scale, offset))
            if whole:  # after every dimension: torch has bytes between two of them
                x = (x + 0.5).floor().clamp(min=0.0, max=255.0)
    return b.cast(x, element) if whole else x


def nearest_places(old: int, new: int, factor: Number | None, exact: bool) -> list[int]:
    """Which old element every new one is."""
    scale = _single(1.0 / factor if factor else old / new)
    return [min(floor(_single((i + (0.5 if exact else 0.0)) * scale)), old - 1) for i in range(new)]


def _runs(places: list[int]) -> list[tuple[int, int, int]]:
    """Places as (start, step, count), each run as long as it can be; step 0 repeats an element."""
    out: list[tuple[int, int, int]] = []
    for place in places:
        if out:
            start, step, count = out[-1]
            if count == 1 or place == start + step * count:
                out[-1] = (start, place - start if count == 1 else step, count + 1)
                continue
        out.append((place, 1, 1))
    return out


def _picked(b: Build, x: Value, at: int, places: list[int]) -> Value | None:
    """The elements of dimension `at` at rising places, repeated as a view or in runs; None if the runs are too many."""
    shape, repeat = x.shape, places.count(0)
    if places == list(range(shape[at])):
        return x
    if places == [i for i in range(shape[at]) for _ in range(repeat)]:
        wide = x.unsqueeze(at + 1).expand(*shape[: at + 1], repeat, *shape[at + 1 :])
        return wide.reshape(*shape[:at], len(places), *shape[at + 1 :])
    runs = _runs(places)
    if len(runs) > MOST_SLICES:
        return None
    parts = [
        taken(b, x, at, start, count, step)
        if step
        else widened(taken(b, x, at, start, 1), (*shape[:at], count, *shape[at + 1 :]))
        for start, step, count in runs
    ]
    return joined(b, parts, at)


def _nearest(b: Build, x: Value, sizes: Ints, scales: tuple[Number | None, ...], exact: bool) -> Value:
    rank = len(sizes)
    for d in reversed(range(rank)):
        at, new, factor = x.rank - rank + d, sizes[d], scales[d]
        require("C1", new > 0, f"a size of {new}")
        old = x.shape[at]
        picked = _picked(b, x, at, nearest_places(old, new, factor, exact))
        if picked is None:
            scale = _single(1.0 / factor if factor else old / new)
            picked = _along(b, x, at, _matrix(b, x, (new, old), "nearest", scale, 0.5 * scale if exact else 0.0))
        x = picked
    return x


def _matrix(b: Build, like: Value, size: Ints, mode: str, scale: float, offset: float) -> Value:
    return b.call("spyre::resample", size=size, mode=mode, scale=scale, offset=offset, dtype=like.element)


def _sizes(x: Value, output_size: Ints | None, factors: Floats | None) -> Ints:
    """The new extents: given, or the old ones times the factors."""
    if output_size is not None:
        return tuple(output_size)
    given = factors or ()
    return tuple(floor(e * f) for e, f in zip(x.shape[-len(given) :], given, strict=True))


def _scales(sizes: Ints, factors: tuple[Number | None, ...] | None) -> tuple[Number | None, ...]:
    """One factor per dimension, as many as there are dimensions: those that an overload lacks are none."""
    return (*((None,) * len(sizes)), *(factors or ()))[-len(sizes) :]


@ATEN.composed(aten=["upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"], ulps=0)
def upsample_nearest(
    b: Build,
    self: Value,
    *,
    output_size: Ints,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """The old element at or before the place of every new one."""
    given = (scales_d, scales_h, scales if len(output_size) == 1 else scales_w)
    return _nearest(b, self, output_size, _scales(output_size, given), exact=False)


@ATEN.composed(
    aten=["upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec"],
    ulps=0,
)
def upsample_nearest_vec(
    b: Build, input: Value, *, output_size: Ints | None = None, scale_factors: Floats | None = None
) -> Value:
    """The old element at or before the place of every new one, sizes or factors given."""
    sizes = _sizes(input, output_size, scale_factors)
    return _nearest(b, input, sizes, _scales(sizes, scale_factors), exact=False)


@ATEN.composed(
    aten=["_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"],
    ulps=0,
)
def upsample_nearest_exact(
    b: Build,
    self: Value,
    *,
    output_size: Ints,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """The old element whose middle is nearest to that of every new one."""
    given = (scales_d, scales_h, scales if len(output_size) == 1 else scales_w)
    return _nearest(b, self, output_size, _scales(output_size, given), exact=True)


@ATEN.composed(
    aten=["_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec"],
    ulps=0,
)
def upsample_nearest_exact_vec(
    b: Build, input: Value, *, output_size: Ints | None = None, scale_factors: Floats | None = None
) -> Value:
    """The old element whose middle is nearest to that of every new one, sizes or factors given."""
    sizes = _sizes(input, output_size, scale_factors)
    return _nearest(b, input, sizes, _scales(sizes, scale_factors), exact=True)


def _interpolation(name: str, overloads: list[str], mode: str, doc: str) -> tuple[OpEntry, OpEntry]:
    """Declares interpolation between the old elements: with sizes, and with sizes or factors (``.vec``)."""

    def plain(
        b: Build,
        self: Value,
        *,
        output_size: Ints,
        align_corners: bool,
        scales: float | None = None,
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Value:
        given = (scales_d, scales_h, scales if len(output_size) == 1 else scales_w)
        return _interpolated(b, self, output_size, mode, align_corners, _scales(output_size, given))

    def vec(
        b: Build,
        input: Value,
        *,
        output_size: Ints | None = None,
        align_corners: bool,
        scale_factors: Floats | None = None,
    ) -> Value:
        sizes = _sizes(input, output_size, scale_factors)
        return _interpolated(b, input, sizes, mode, align_corners, _scales(sizes, scale_factors))

    plain.__name__, plain.__doc__ = name, f"{doc}."
    vec.__name__, vec.__doc__ = f"{name}_vec", f"{doc}; sizes or factors given."
    return (
        ATEN.composed(aten=overloads)(plain),
        ATEN.composed(aten=[f"{o}.vec" for o in overloads])(vec),
    )


upsample_linear, upsample_linear_vec = _interpolation(
    "upsample_linear",
    ["upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"],
    "linear",
    "A straight line between neighbouring elements, in every dimension",
)
upsample_cubic, upsample_cubic_vec = _interpolation(
    "upsample_cubic", ["upsample_bicubic2d"], "cubic", "A cubic curve through four neighbours, in both dimensions"
)
upsample_linear_aa, upsample_linear_aa_vec = _interpolation(
    "upsample_linear_aa",
    ["_upsample_bilinear2d_aa"],
    "linear_smoothed",
    "Linear interpolation over windows that widen as the image shrinks",
)
upsample_cubic_aa, upsample_cubic_aa_vec = _interpolation(
    "upsample_cubic_aa",
    ["_upsample_bicubic2d_aa"],
    "cubic_smoothed",
    "Cubic interpolation over windows that widen as the image shrinks",
)

ATEN.samples(resample, Sample((), {"size": (2, 3, 4), "mode": "linear", "scale": 1.0, "offset": 0.0}, breaks="C1"))
_LINE, _IMAGE, _CUBE = ((2, 3, 5),), ((2, 3, 4, 5),), ((1, 2, 3, 2, 4),)
for _entry in (upsample_nearest, upsample_nearest_exact):
    ATEN.samples(
        _entry,
        Sample(_LINE, {"output_size": (10,)}),
        Sample(_LINE, {"output_size": (8,), "scales": 1.7}),
        Sample(_IMAGE, {"output_size": (3, 7)}),
        Sample(_CUBE, {"output_size": (6, 3, 2)}),
        Sample(_CUBE, {"output_size": (5, 3, 6), "scales_d": 1.7, "scales_h": 1.6, "scales_w": 1.5}),
    )
for _entry in (upsample_nearest_vec, upsample_nearest_exact_vec):
    ATEN.samples(
        _entry,
        Sample(_LINE, {"scale_factors": (2.0,)}),
        Sample(_IMAGE, {"scale_factors": (1.5, 0.5)}),
        Sample(_CUBE, {"output_size": (2, 2, 3)}),
    )
for _entry in (upsample_linear, upsample_cubic, upsample_linear_aa, upsample_cubic_aa):
    ATEN.samples(
        _entry,
        Sample(_LINE, {"output_size": (9,), "align_corners": False}),
        Sample(_IMAGE, {"output_size": (7, 3), "align_corners": True}),
        Sample(_IMAGE, {"output_size": (6, 8), "align_corners": False, "scales_h": 1.6, "scales_w": 1.7}),
        Sample(_CUBE, {"output_size": (2, 4, 1), "align_corners": True}),
        Sample(_LINE, {"output_size": (8,), "align_corners": False, "scales": 1.7}),
        Sample(
            _CUBE,
            {"output_size": (5, 3, 6), "align_corners": False, "scales_d": 1.7, "scales_h": 1.6, "scales_w": 1.5},
        ),
    )
for _entry in (upsample_linear_vec, upsample_cubic_vec, upsample_linear_aa_vec, upsample_cubic_aa_vec):
    ATEN.samples(
        _entry,
        Sample(_LINE, {"scale_factors": (2.0,), "align_corners": False}),
        Sample(_IMAGE, {"scale_factors": (1.5, 0.5), "align_corners": False}),
        Sample(_CUBE, {"output_size": (2, 4, 3), "align_corners": True}),
    )
