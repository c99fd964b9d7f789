"""Trigonometric functions: reduced to an interval around 0, then a polynomial; and their inverses."""

from __future__ import annotations

from math import pi
from typing import Any

from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import has_minus, polynomial, with_sign_of
from spyre_mlir.ops.table import Sample

# Pi in three parts (Cody and Waite). The first two have few bits, so that their products with whole numbers up to
# a hundred are exact in narrow formats too, up to a million in float32, and so are the differences: an angle is of the
# size of its multiple of pi.
PI_PARTS = (3.0, 0.140625, pi - 3.140625)
# sin(r) / r in powers of r squared for |r| <= 1.75: more than half of pi, as a rounded count of periods needs. Up to 3
# it stays between -1 and 1.
_WIDEST = 3.0
_SINE = (0.9999999836, -0.1666664234, 0.008332735923, -0.0001978886623, 2.564897572e-06)
# tan(r) / r for |r| <= 0.85, and near it up to 1.25.
_WIDEST_OF_TANGENT = 1.25
_TANGENT = (1.000000067, 0.3333244776, 0.1335229211, 0.05246797179, 0.02739769373, -0.001159319322, 0.01168795994)
# (asin(r) / r - 1) / r squared for |r| <= 0.5.
_ARC_SINE = (0.1666555964, 0.07541118907, 0.03998802793, 0.05006416793)
# atan(r) / r for |r| <= 1.
_ARC_TANGENT = (
    0.9999998999,
    -0.3333197812,
    0.1996949281,
    -0.1401792651,
    0.09909378819,
    -0.05940744,
    0.02419000489,
    -0.004674031564,
)
# What the fits leave in exact arithmetic.
_FIT = 2e-7


def _sine(self: Lanes) -> Lanes:
    return np.sin(self)


def _cosine(self: Lanes) -> Lanes:
    return np.cos(self)


@ATEN.composed(aten=["sin"], promote=True, ulps=4, tolerance=_FIT, meaning=_sine)
def sin(b: Build, self: Lanes) -> Any:
    """The sine, in radians; on the device for magnitudes up to some 350, in float32 up to three million."""
    # x = r + k pi with |r| <= pi / 2, so sin x = (-1)^k sin r.
    periods = b.call("floor", b.call("add.Tensor", b.call("mul.Tensor", self, 1.0 / pi), 0.5))
    return _signed_sine(b, self, periods, periods)


@ATEN.composed(aten=["cos"], promote=True, ulps=4, tolerance=_FIT, meaning=_cosine)
def cos(b: Build, self: Lanes) -> Any:
    """The cosine, in radians; on the device for magnitudes up to some 350, in float32 up to three million."""
    # x = r + (k - 1/2) pi with |r| <= pi / 2, so cos x = sin (x + pi / 2) = (-1)^k sin r.
    periods = b.call("floor", b.call("add.Tensor", b.call("mul.Tensor", self, 1.0 / pi), 1.0))
    return _signed_sine(b, self, b.call("sub.Tensor", periods, 0.5), periods)


def _reduced(b: Build, angle: Any, count: Any, unit: float, widest: float) -> Any:
    """angle - count * unit * pi, part by part; of angles that are no longer known, something the fits are made for."""
    for part in PI_PARTS:
        angle = b.call("sub.Tensor", angle, b.call("mul.Tensor", count, part * unit))
    return b.call("clamp", angle, min=-widest, max=widest)


def is_odd(b: Build, count: Any) -> Any:
    """Where a whole number is odd: its half is none."""
    half = b.call("mul.Tensor", count, 0.5)
    return b.call("ne.Tensor", b.call("floor", half), half)


def _signed_sine(b: Build, angle: Any, shift: Any, periods: Any) -> Any:
    """(-1)^periods * sin(angle - shift * pi)."""
    rest = _reduced(b, angle, shift, 1.0, _WIDEST)
    rest = b.call("where.self", is_odd(b, periods), b.call("neg", rest), rest)
    return b.call("mul.Tensor", polynomial(b, b.call("mul.Tensor", rest, rest), _SINE), rest)


@ATEN.composed(aten=["tan"], promote=True, ulps=4, tolerance=_FIT)
def tan(b: Build, self: Lanes) -> Any:
    """The tangent, in radians; on the device for magnitudes up to some 150.

    x = r + k pi/2 with |r| <= pi/4, and for odd k the negative inverse of the tangent of r.
    """
    count = b.call("floor", b.call("add.Tensor", b.call("mul.Tensor", self, 2.0 / pi), 0.5))
    rest = _reduced(b, self, count, 0.5, _WIDEST_OF_TANGENT)
    tangent = b.call("mul.Tensor", polynomial(b, b.call("mul.Tensor", rest, rest), _TANGENT), rest)
    return b.call("where.self", is_odd(b, count), b.call("neg", b.call("reciprocal", tangent)), tangent)


def _arc_sine_of(b: Build, x: Any, square: Any) -> Any:
    """asin(x) for x in [0, 0.5]."""
    rest = b.call("mul.Tensor", square, polynomial(b, square, _ARC_SINE))
    return b.call("add.Tensor", x, b.call("mul.Tensor", x, rest))


def _arc_sine_parts(b: Build, x: Any) -> tuple[Any, Any]:
    """Where a magnitude x is above 0.5, and asin(x), or there asin(sqrt((1 - x) / 2))."""
    large = b.call("gt.Scalar", x, 0.5)
    square = b.call("mul.Tensor", b.call("sub.Tensor", 1.0, x), 0.5)
    square = b.call("where.self", large, square, b.call("mul.Tensor", x, x))
    root = b.call("where.self", large, b.call("sqrt", square), x)
    return large, _arc_sine_of(b, root, square)


@ATEN.composed(aten=["asin"], promote=True, ulps=4, tolerance=_FIT)
def asin(b: Build, self: Lanes) -> Any:
    """The inverse sine; above 0.5 pi/2 less twice that of sqrt((1 - x) / 2)."""
    large, part = _arc_sine_parts(b, b.call("abs", self))
    other = b.call("sub.Tensor", pi / 2, b.call("mul.Tensor", part, 2.0))
    return with_sign_of(b, self, b.call("where.self", large, other, part), keeps_zero=True)


@ATEN.composed(aten=["acos"], promote=True, ulps=4, tolerance=_FIT)
def acos(b: Build, self: Lanes) -> Any:
    """The inverse cosine; 2 asin(sqrt((1 - |x|) / 2)), or pi less that, for magnitudes above 0.5."""
    large, part = _arc_sine_parts(b, b.call("abs", self))
    twice = b.call("mul.Tensor", part, 2.0)
    negative = b.call("lt.Scalar", self, 0.0)
    outer = b.call("where.self", negative, b.call("sub.Tensor", pi, twice), twice)
    inner = b.call("sub.Tensor", pi / 2, b.call("where.self", negative, b.call("neg", part), part))
    return b.call("where.self", large, outer, inner)


def _arc_tangent_of(b: Build, ratio: Any) -> Any:
    """atan of a ratio in [0, 1]."""
    return b.call("mul.Tensor", ratio, polynomial(b, b.call("mul.Tensor", ratio, ratio), _ARC_TANGENT))


@ATEN.composed(aten=["atan"], promote=True, ulps=4, tolerance=_FIT)
def atan(b: Build, self: Lanes) -> Any:
    """The inverse tangent; above 1 pi/2 less that of 1/x."""
    x = b.call("abs", self)
    large = b.call("gt.Scalar", x, 1.0)
    part = _arc_tangent_of(b, b.call("where.self", large, b.call("reciprocal", x), x))
    out = b.call("where.self", large, b.call("sub.Tensor", pi / 2, part), part)
    return with_sign_of(b, self, out, keeps_zero=True)


@ATEN.composed(aten=["atan2"], promote=True, ulps=4, tolerance=_FIT)
def atan2(b: Build, self: Lanes, other: Lanes) -> Any:
    """The angle of the point (other, self), from the smaller magnitude over the larger one."""
    y, x = b.call("abs", self), b.call("abs", other)
    smaller, larger = b.call("minimum", y, x), b.call("maximum", y, x)
    # Equal magnitudes have the ratio 1, infinities too; the origin has the ratio 0.
    ratio = b.call("where.self", b.call("eq.Tensor", y, x), 1.0, b.call("div.Tensor", smaller, larger))
    ratio = b.call("where.self", b.call("eq.Scalar", larger, 0.0), 0.0, ratio)
    part = _arc_tangent_of(b, ratio)
    part = b.call("where.self", b.call("gt.Tensor", y, x), b.call("sub.Tensor", pi / 2, part), part)
    part = b.call("where.self", has_minus(b, other), b.call("sub.Tensor", pi, part), part)
    return b.call("where.self", has_minus(b, self), b.call("neg", part), part)


@ATEN.composed(aten=["angle"], promote=True, ulps=1)
def angle(b: Build, self: Lanes) -> Any:
    """The angle of a real number: pi below 0, else 0."""
    zero = b.call("where.self", b.call("ne.Tensor", self, self), self, 0.0)
    return b.call("where.self", b.call("lt.Scalar", self, 0.0), pi, zero)


for _entry in (sin, cos, tan):
    ATEN.samples(_entry, Sample(((3, 65),), low=-7.0, high=7.0))
for _entry in (asin, acos):
    ATEN.samples(_entry, Sample(((3, 65),), low=-1.0, high=1.0))
ATEN.samples(atan, Sample(((3, 65),), low=-9.0, high=9.0))
ATEN.samples(atan2, Sample(((2, 3, 65), (65,)), low=-9.0, high=9.0))
ATEN.samples(angle, Sample(((3, 65),)))
