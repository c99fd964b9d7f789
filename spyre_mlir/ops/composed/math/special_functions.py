"""The error function and its relatives; sin(pi x) / (pi x)."""

from __future__ import annotations

from math import pi, sqrt

from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.math.trigonometry import is_odd
from spyre_mlir.ops.helpers.approximations import log_of_one_plus, polynomial, with_sign_of
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# atanh(erf(x)) / x in powers of x squared for |x| <= 4, beyond which erf is 1 in every format.
_ERF = (
    1.128379274,
    0.1027690567,
    -0.0001918326873,
    -0.0006197831586,
    8.763680517e-05,
    -5.668396414e-06,
    1.418479997e-07,
)
_ERF_END = 4.0
# e^(x²) erfc(x) over t = 1 / (1 + 0.4 x), in powers of t, for all x >= 0.
_ERFCX_RATE = 0.4
_ERFCX = (
    0.2256758624,
    0.2256695715,
    0.207843103,
    0.1685392595,
    0.1414410586,
    -0.005626746913,
    0.1691071483,
    -0.1829144274,
    0.05026529605,
)
# erfinv(x) / x, with w = -log(1 - x²): in powers of w - 2.5 up to 5, of sqrt(w) - 3 beyond.
_ERFINV_INNER = (
    1.50140918,
    0.2466414208,
    -0.004176258796,
    -0.001254631486,
    0.0002173360244,
    -4.09419827e-06,
    -3.185882678e-06,
    3.156332941e-07,
)
_ERFINV_OUTER = (
    2.832978084,
    1.00167758,
    0.009399855033,
    -0.007669560498,
    0.005947048611,
    -0.003538426755,
    0.0009874619545,
)
_ERFINV_SPLIT = 5.0
# erfinv(x) / sqrt(w) in powers of 1 / sqrt(w), up to w = 105: that of the smallest float32 number.
_ERFINV_FAR = (
    1.000449936,
    -0.03322963349,
    -1.12390102,
    3.918426675,
    -8.786980465,
    14.74124562,
    -14.89062204,
    6.317663632,
)
# sin(pi r) / r for |r| <= 0.5.
_SINE_OF_HALF_TURNS = (3.141592637, -5.167709681, 2.550069623, -0.5982413641, 0.07755866652)
# What the fits leave in exact arithmetic.
_FIT = 2e-7
_INVERSE_FIT = 5e-7
# Steps of the part of x whose square is exact in DL16: up to 4.75 it has nine bits.
_STEP = 0.25
# From here on e^(-x²) is 0 in every format.
_GAUSS_END = 32.0


def exp_of_square(x: Value, factor: float) -> Value:
    """e^(factor x²) for x >= 0, with an exact square of the leading part h of x: e^(factor h²) e^(factor (x² - h²))."""
    x = x.minimum(_GAUSS_END)
    h = (x * (1.0 / _STEP)).floor() * _STEP
    rest = (x - h) * (x + h)
    square = h * h
    if factor != 1:
        rest, square = (part * factor for part in (rest, square))
    return square.exp() * rest.exp()


def scaled_tail(x: Value) -> Value:
    """e^(x²) erfc(x) for x >= 0."""
    t = (x * _ERFCX_RATE + 1.0).reciprocal()
    return t * polynomial(t, _ERFCX)


def normal_tail(x: Value, scaled: Value) -> Value:
    """The area under the standard normal curve beyond x >= 0: e^(-x²/2) times half of a scaled tail."""
    return exp_of_square(x, -0.5) * (scaled * 0.5)


def tail(x: Value) -> Value:
    """erfc(x): 2 - erfc(-x) below 0, so that nothing cancels above."""
    magnitude = abs(x)
    out = exp_of_square(magnitude, -1.0) * scaled_tail(magnitude)
    return x.lt(0.0).where(2.0 - out, out)


@ATEN.composed(aten=["erf"], promote=True, ulps=4, tolerance=_FIT)
def erf(b: Build, self: Value) -> Value:
    """The error function as tanh(x P(x²)), which keeps the relative error near 0 and the limits."""
    x = self.maximum(-_ERF_END).minimum(_ERF_END)
    return b.call("tanh", x * polynomial(x * x, _ERF))


@ATEN.composed(aten=["erfc"], promote=True, ulps=8, tolerance=_FIT)
def erfc(self: Value) -> Value:
    """1 - erf(x) without the difference."""
    return tail(self)


@ATEN.composed(aten=["special_erfcx"], promote=True, ulps=8, tolerance=_FIT)
def erfcx(self: Value) -> Value:
    """e^(x²) erfc(x)."""
    magnitude = abs(self)
    out = scaled_tail(magnitude)
    below = exp_of_square(magnitude, 1.0) * 2.0 - out
    return self.lt(0.0).where(below, out)


@ATEN.composed(aten=["special_ndtr"], promote=True, ulps=8, tolerance=_FIT)
def ndtr(self: Value) -> Value:
    """The area under the standard normal curve up to x, erfc(-x / sqrt(2)) / 2; 1 less that of -x above 0."""
    magnitude = abs(self)
    area = normal_tail(magnitude, scaled_tail(magnitude * sqrt(0.5)))
    return self.gt(0.0).where(1.0 - area, area)


@ATEN.composed(aten=["special_log_ndtr"], promote=True, ulps=8, tolerance=_FIT)
def log_ndtr(self: Value) -> Value:
    """The logarithm of `ndtr`: log(erfcx(-t) / 2) - x²/2 below 0 with t = x / sqrt(2), else log1p(-erfc(t) / 2)."""
    magnitude = abs(self)
    scaled = scaled_tail(magnitude * sqrt(0.5))
    half_square = self * self * 0.5
    below = (scaled * 0.5).log() - half_square
    above = log_of_one_plus(-normal_tail(magnitude, scaled))
    return self.lt(0.0).where(below, above)


def _inverse_near_zero(w: Value) -> Value:
    """erfinv(x) / x where w = -log(1 - x²) is below the split."""
    return polynomial(w - _ERFINV_SPLIT / 2, _ERFINV_INNER)


def _with_ends(x: Value, rest: Value, out: Value) -> Value:
    """Infinities where `rest`, 1 - x², is 0; not where x is rounded to 1."""
    return rest.eq(0.0).where(x * float("inf"), out)


@ATEN.composed(aten=["erfinv"], promote=True, ulps=4, tolerance=_INVERSE_FIT)
def erfinv(self: Value) -> Value:
    """The inverse of the error function on (-1, 1): x times a polynomial of -log(1 - x²), or of its root."""
    rest = (1.0 - self) * (self + 1.0)
    w = -rest.log()
    outer = polynomial(w.sqrt() - 3.0, _ERFINV_OUTER)
    out = self * w.lt(_ERFINV_SPLIT).where(_inverse_near_zero(w), outer)
    return _with_ends(self, rest, out)


@ATEN.composed(aten=["special_ndtri"], promote=True, ulps=4, tolerance=_INVERSE_FIT)
def ndtri(self: Value) -> Value:
    """The inverse of `ndtr`, sqrt(2) erfinv(2 x - 1); 4 x (1 - x) is what 1 - (2 x - 1)² rounds away near 0.

    So w = -log(4 x (1 - x)) reaches far beyond that of `erfinv`.
    """
    doubled = self * 2.0
    rest = doubled * (2.0 - doubled)
    x, w = doubled - 1.0, -rest.log()
    root = w.maximum(1.0).sqrt()
    far = with_sign_of(x, root * polynomial(root.reciprocal(), _ERFINV_FAR))
    out = w.lt(_ERFINV_SPLIT).where(x * _inverse_near_zero(w), far)
    return _with_ends(x, rest, out) * sqrt(2.0)


@ATEN.composed(aten=["sinc"], promote=True, ulps=8, tolerance=_FIT)
def sinc(self: Value) -> Value:
    """sin(pi x) / (pi x), 1 at 0: the nearest integer is subtracted before the product with pi."""
    count = (self + 0.5).floor()
    rest = self - count
    rest = is_odd(count).where(-rest, rest)
    sine = polynomial(rest * rest, _SINE_OF_HALF_TURNS) * rest
    out = sine / (self * pi)
    return self.eq(0.0).where(1.0, out)


for _entry in (erf, erfc, ndtr, log_ndtr):
    ATEN.samples(_entry, Sample(((3, 65),), low=-3.5, high=3.5))
ATEN.samples(erfcx, Sample(((3, 65),), low=-2.0, high=9.0))
ATEN.samples(erfinv, Sample(((3, 65),), low=-0.99, high=0.99))
ATEN.samples(ndtri, Sample(((3, 65),), low=0.02, high=0.98))
ATEN.samples(sinc, Sample(((3, 65),), low=-7.0, high=7.0))
