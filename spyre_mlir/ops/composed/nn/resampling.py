"""Other sizes of an image: every dimension is a product with a fixed matrix of weights, or a choice of slices."""

from __future__ import annotations

import struct
from math import floor, prod

from spyre_mlir.ops.annotations import Floats, Ints, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, taken, widened
from spyre_mlir.ops.native.resample import FIXED
from spyre_mlir.ops.table import OpEntry, Sample, require
from spyre_mlir.ops.value import Value

# Slices that a nearest-neighbour choice along one dimension may take; a product with zeros and ones is cheaper then.
MOST_SLICES = 64


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
