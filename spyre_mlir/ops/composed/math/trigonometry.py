"""Trigonometric functions: reduced to an interval around 0, then a polynomial; and their inverses."""

from __future__ import annotations

from math import pi

from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import has_minus, polynomial, with_sign_of
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# Pi in three parts (Cody and Waite). The first two have few bits, so that their products with whole numbers up to
# a hundred are exact in narrow formats too, up to a million in float32, and so are the differences: an angle is of the
# size of its multiple of pi.
PI_PARTS = (3.0, 0.140625, 9.6765358979323846e-4)
# sin(r) / r in powers of r squared for |r| <= 1.75: more than half of pi, as a rounded count of periods needs. Up to 3
# it stays between -1 and 1. At half of pi it is 1 to the last bit of float64, for the floor and the ceiling of cos 0.
_WIDEST = 3.0
_SINE = (0.999999982756235, -0.16666641874, 0.008332729442, -0.0001978859669, 2.564561661e-06)
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
def sin(self: Value) -> Value:
    """The sine, in radians; on the device for magnitudes up to some 350, in float32 up to three million."""
    # x = r + k pi with |r| <= pi / 2, so sin x = (-1)^k sin r.
    periods = (self * (1.0 / pi) + 0.5).floor()
    return _signed_sine(self, periods, periods)


@ATEN.composed(aten=["cos"], promote=True, ulps=4, tolerance=_FIT, meaning=_cosine)
def cos(self: Value) -> Value:
    """The cosine, in radians; on the device for magnitudes up to some 350, in float32 up to three million."""
    # x = r + (k - 1/2) pi with |r| <= pi / 2, so cos x = sin (x + pi / 2) = (-1)^k sin r.
    periods = (self * (1.0 / pi) + 1.0).floor()
    return _signed_sine(self, periods - 0.5, periods)


def _reduced(angle: Value, count: Value, unit: float, widest: float) -> Value:
    """angle - count * unit * pi, part by part; of angles that are no longer known, something the fits are made for."""
    for part in PI_PARTS:
        angle = angle - count * (part * unit)
    return angle.clamp(min=-widest, max=widest)


def is_odd(count: Value) -> Value:
    """1 where an integer is odd: its half is not an integer."""
    half = count * 0.5
    return half.floor().ne(half)


def _signed_sine(angle: Value, shift: Value, periods: Value) -> Value:
    """(-1)^periods * sin(angle - shift * pi)."""
    rest = _reduced(angle, shift, 1.0, _WIDEST)
    rest = is_odd(periods).where(-rest, rest)
    return polynomial(rest * rest, _SINE) * rest


@ATEN.composed(aten=["tan"], promote=True, ulps=4, tolerance=_FIT)
def tan(self: Value) -> Value:
    """The tangent, in radians; on the device for magnitudes up to some 150.

    x = r + k pi/2 with |r| <= pi/4, and for odd k the negative inverse of the tangent of r.
    """
    count = (self * (2.0 / pi) + 0.5).floor()
    rest = _reduced(self, count, 0.5, _WIDEST_OF_TANGENT)
    tangent = polynomial(rest * rest, _TANGENT) * rest
    return is_odd(count).where(-tangent.reciprocal(), tangent)


def _arc_sine_of(x: Value, square: Value) -> Value:
    """asin(x) for x in [0, 0.5]."""
    rest = square * polynomial(square, _ARC_SINE)
    return x + x * rest


def _arc_sine_parts(x: Value) -> tuple[Value, Value]:
    """Where a magnitude x is above 0.5, and asin(x), or there asin(sqrt((1 - x) / 2))."""
    large = x.gt(0.5)
    square = (1.0 - x) * 0.5
    square = large.where(square, x * x)
    root = large.where(square.sqrt(), x)
    return large, _arc_sine_of(root, square)


@ATEN.composed(aten=["asin"], promote=True, ulps=4, tolerance=_FIT)
def asin(self: Value) -> Value:
    """The inverse sine; above 0.5 pi/2 less twice that of sqrt((1 - x) / 2)."""
    large, part = _arc_sine_parts(abs(self))
    other = pi / 2 - part * 2.0
    return with_sign_of(self, large.where(other, part), keeps_zero=True)


@ATEN.composed(aten=["acos"], promote=True, ulps=4, tolerance=_FIT)
def acos(self: Value) -> Value:
    """The inverse cosine; 2 asin(sqrt((1 - |x|) / 2)), or pi less that, for magnitudes above 0.5."""
    large, part = _arc_sine_parts(abs(self))
    twice = part * 2.0
    negative = self.lt(0.0)
    outer = negative.where(pi - twice, twice)
    inner = pi / 2 - negative.where(-part, part)
    return large.where(outer, inner)


def _arc_tangent_of(ratio: Value) -> Value:
    """atan of a ratio in [0, 1]."""
    return ratio * polynomial(ratio * ratio, _ARC_TANGENT)


@ATEN.composed(aten=["atan"], promote=True, ulps=4, tolerance=_FIT)
def atan(self: Value) -> Value:
    """The inverse tangent; above 1 pi/2 less that of 1/x."""
    x = abs(self)
    large = x.gt(1.0)
    part = _arc_tangent_of(large.where(x.reciprocal(), x))
    out = large.where(pi / 2 - part, part)
    return with_sign_of(self, out, keeps_zero=True)


@ATEN.composed(aten=["atan2"], promote=True, ulps=4, tolerance=_FIT)
def atan2(b: Build, self: Value, other: Value) -> Value:
    """The angle of the point (other, self), from the smaller magnitude over the larger one."""
    y, x = abs(self), abs(other)
    smaller, larger = y.minimum(x), y.maximum(x)
    # Equal magnitudes have the ratio 1, infinities too; the origin has the ratio 0.
    ratio = y.eq(x).where(1.0, smaller / larger)
    ratio = larger.eq(0.0).where(0.0, ratio)
    part = _arc_tangent_of(ratio)
    part = y.gt(x).where(pi / 2 - part, part)
    part = has_minus(b, other).where(pi - part, part)
    return has_minus(b, self).where(-part, part)


@ATEN.composed(aten=["angle"], promote=True, ulps=1)
def angle(self: Value) -> Value:
    """The angle of a real number: pi below 0, else 0."""
    zero = self.ne(self).where(self, 0.0)
    return self.lt(0.0).where(pi, zero)


for _entry in (sin, cos, tan):
    ATEN.samples(_entry, Sample(((3, 65),), low=-7.0, high=7.0))
for _entry in (asin, acos):
    ATEN.samples(_entry, Sample(((3, 65),), low=-1.0, high=1.0))
ATEN.samples(atan, Sample(((3, 65),), low=-9.0, high=9.0))
ATEN.samples(atan2, Sample(((2, 3, 65), (65,)), low=-9.0, high=9.0))
ATEN.samples(angle, Sample(((3, 65),)))
