"""The error function and its relatives; sin(pi x) / (pi x)."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.math.trigonometry import is_odd
from spyre_mlir.ops.helpers.approximations import log_of_one_plus, polynomial
from spyre_mlir.ops.table import Sample

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
# sin(pi r) / r for |r| <= 0.5.
_SINE_OF_HALF_TURNS = (3.141592637, -5.167709681, 2.550069623, -0.5982413641, 0.07755866652)
# What the fits leave in exact arithmetic.
_FIT = 2e-7
_INVERSE_FIT = 5e-7
# Steps of the part of x whose square is exact in DL16: up to 4.75 it has nine bits.
_STEP = 0.25
# From here on e^(-x²) is 0 in every format.
_GAUSS_END = 32.0


def exp_of_square(b: Build, x: Any, factor: float) -> Any:
    """e^(factor x²) for x >= 0, with an exact square of the leading part h of x: e^(factor h²) e^(factor (x² - h²))."""
    x = b.call("minimum", x, _GAUSS_END)
    h = b.call("mul.Tensor", b.call("floor", b.call("mul.Tensor", x, 1.0 / _STEP)), _STEP)
    rest = b.call("mul.Tensor", b.call("sub.Tensor", x, h), b.call("add.Tensor", x, h))
    square = b.call("mul.Tensor", h, h)
    if factor != 1:
        rest, square = (b.call("mul.Tensor", part, factor) for part in (rest, square))
    return b.call("mul.Tensor", b.call("exp", square), b.call("exp", rest))


def scaled_tail(b: Build, x: Any) -> Any:
    """e^(x²) erfc(x) for x >= 0."""
    t = b.call("reciprocal", b.call("add.Tensor", b.call("mul.Tensor", x, _ERFCX_RATE), 1.0))
    return b.call("mul.Tensor", t, polynomial(b, t, _ERFCX))


def normal_tail(b: Build, x: Any, scaled: Any) -> Any:
    """The area under the standard normal curve beyond x >= 0: e^(-x²/2) times half of a scaled tail."""
    return b.call("mul.Tensor", exp_of_square(b, x, -0.5), b.call("mul.Tensor", scaled, 0.5))


def tail(b: Build, x: Any) -> Any:
    """erfc(x): 2 - erfc(-x) below 0, so that nothing cancels above."""
    magnitude = b.call("abs", x)
    out = b.call("mul.Tensor", exp_of_square(b, magnitude, -1.0), scaled_tail(b, magnitude))
    return b.call("where.self", b.call("lt.Scalar", x, 0.0), b.call("sub.Tensor", 2.0, out), out)


@ATEN.composed(aten=["erf"], promote=True, ulps=4, tolerance=_FIT)
def erf(b: Build, self: Lanes) -> Any:
    """The error function as tanh(x P(x²)), which keeps the relative error near 0 and the limits."""
    x = b.call("minimum", b.call("maximum", self, -_ERF_END), _ERF_END)
    return b.call("tanh", b.call("mul.Tensor", x, polynomial(b, b.call("mul.Tensor", x, x), _ERF)))


@ATEN.composed(aten=["erfc"], promote=True, ulps=8, tolerance=_FIT)
def erfc(b: Build, self: Lanes) -> Any:
    """1 - erf(x) without the difference."""
    return tail(b, self)


@ATEN.composed(aten=["special_erfcx"], promote=True, ulps=8, tolerance=_FIT)
def erfcx(b: Build, self: Lanes) -> Any:
    """e^(x²) erfc(x)."""
    magnitude = b.call("abs", self)
    out = scaled_tail(b, magnitude)
    below = b.call("sub.Tensor", b.call("mul.Tensor", exp_of_square(b, magnitude, 1.0), 2.0), out)
    return b.call("where.self", b.call("lt.Scalar", self, 0.0), below, out)


@ATEN.composed(aten=["special_ndtr"], promote=True, ulps=8, tolerance=_FIT)
def ndtr(b: Build, self: Lanes) -> Any:
    """The area under the standard normal curve up to x, erfc(-x / sqrt(2)) / 2; 1 less that of -x above 0."""
    magnitude = b.call("abs", self)
    area = normal_tail(b, magnitude, scaled_tail(b, b.call("mul.Tensor", magnitude, sqrt(0.5))))
    return b.call("where.self", b.call("gt.Scalar", self, 0.0), b.call("sub.Tensor", 1.0, area), area)


@ATEN.composed(aten=["special_log_ndtr"], promote=True, ulps=8, tolerance=_FIT)
def log_ndtr(b: Build, self: Lanes) -> Any:
    """The logarithm of `ndtr`: log(erfcx(-t) / 2) - x²/2 below 0 with t = x / sqrt(2), else log1p(-erfc(t) / 2)."""
    magnitude = b.call("abs", self)
    scaled = scaled_tail(b, b.call("mul.Tensor", magnitude, sqrt(0.5)))
    half_square = b.call("mul.Tensor", b.call("mul.Tensor", self, self), 0.5)
    below = b.call("sub.Tensor", b.call("log", b.call("mul.Tensor", scaled, 0.5)), half_square)
    above = log_of_one_plus(b, b.call("neg", normal_tail(b, magnitude, scaled)))
    return b.call("where.self", b.call("lt.Scalar", self, 0.0), below, above)


def inverse_error_function(b: Build, x: Any, rest: Any) -> Any:
    """erfinv(x), given `rest` = 1 - x²: x times a polynomial of -log(rest), or of its root near the ends."""
    w = b.call("neg", b.call("log", rest))
    inner = polynomial(b, b.call("sub.Tensor", w, _ERFINV_SPLIT / 2), _ERFINV_INNER)
    outer = polynomial(b, b.call("sub.Tensor", b.call("sqrt", w), 3.0), _ERFINV_OUTER)
    out = b.call("mul.Tensor", x, b.call("where.self", b.call("lt.Scalar", w, _ERFINV_SPLIT), inner, outer))
    ends = b.call("eq.Scalar", b.call("abs", x), 1.0)
    return b.call("where.self", ends, b.call("mul.Tensor", x, float("inf")), out)


@ATEN.composed(aten=["erfinv"], promote=True, ulps=4, tolerance=_INVERSE_FIT)
def erfinv(b: Build, self: Lanes) -> Any:
    """The inverse of the error function on (-1, 1)."""
    rest = b.call("mul.Tensor", b.call("sub.Tensor", 1.0, self), b.call("add.Tensor", self, 1.0))
    return inverse_error_function(b, self, rest)


@ATEN.composed(aten=["special_ndtri"], promote=True, ulps=4, tolerance=_INVERSE_FIT)
def ndtri(b: Build, self: Lanes) -> Any:
    """The inverse of `ndtr`, sqrt(2) erfinv(2 x - 1); 4 x (1 - x) is what 1 - (2 x - 1)² rounds away near 0."""
    doubled = b.call("mul.Tensor", self, 2.0)
    rest = b.call("mul.Tensor", doubled, b.call("sub.Tensor", 2.0, doubled))
    return b.call("mul.Tensor", inverse_error_function(b, b.call("sub.Tensor", doubled, 1.0), rest), sqrt(2.0))


@ATEN.composed(aten=["sinc"], promote=True, ulps=8, tolerance=_FIT)
def sinc(b: Build, self: Lanes) -> Any:
    """sin(pi x) / (pi x), 1 at 0: the nearest whole number is taken off before the product with pi."""
    count = b.call("floor", b.call("add.Tensor", self, 0.5))
    rest = b.call("sub.Tensor", self, count)
    rest = b.call("where.self", is_odd(b, count), b.call("neg", rest), rest)
    sine = b.call("mul.Tensor", polynomial(b, b.call("mul.Tensor", rest, rest), _SINE_OF_HALF_TURNS), rest)
    out = b.call("div.Tensor", sine, b.call("mul.Tensor", self, pi))
    return b.call("where.self", b.call("eq.Scalar", self, 0.0), 1.0, out)


for _entry in (erf, erfc, ndtr, log_ndtr):
    ATEN.samples(_entry, Sample(((3, 65),), low=-3.5, high=3.5))
ATEN.samples(erfcx, Sample(((3, 65),), low=-2.0, high=9.0))
ATEN.samples(erfinv, Sample(((3, 65),), low=-0.99, high=0.99))
ATEN.samples(ndtri, Sample(((3, 65),), low=0.02, high=0.98))
ATEN.samples(sinc, Sample(((3, 65),), low=-7.0, high=7.0))
