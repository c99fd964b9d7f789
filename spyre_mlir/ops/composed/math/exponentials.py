"""Exponentials, logarithms and hyperbolic functions, in forms that keep their relative error near 0."""

from __future__ import annotations

from math import ceil, frexp, ldexp, log
from typing import Any

from spyre_mlir.ops.annotations import Lanes, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import log_of_one_plus, log_of_one_plus_exp, with_sign_of
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.table import Sample

# Bits of the first part of a rate: its product with a whole number of five bits is exact in DL16.
_FIRST_BITS = 5
# Beyond this exponent of e every format is at infinity or 0, and a difference of infinities is avoided.
_LARGEST = 800.0
# Above it, sqrt(x * x + 1) is x in every format, and x * x may overflow.
_LARGE = 16384.0


def exp_of_multiple(b: Build, x: Any, rate: float) -> Any:
    """e^(rate x), which a rounded product rate * x would spoil: the error of an exponent is a relative error here.

    x = n + f with n whole; rate = r1 + r2 with few bits in r1, so that r1 n is exact: e^(r1 n) e^(r2 n + rate f).
    """
    mantissa, exponent = frexp(rate)
    first = ldexp(round(mantissa * 2**_FIRST_BITS), exponent - _FIRST_BITS)
    bound = float(ceil(_LARGEST / abs(rate)))
    x = b.call("minimum", b.call("maximum", x, -bound), bound)
    n = b.call("floor", x)
    rest = b.call("mul.Tensor", b.call("sub.Tensor", x, n), rate)
    rest = b.call("add.Tensor", b.call("mul.Tensor", n, rate - first), rest)
    return b.call("mul.Tensor", b.call("exp", b.call("mul.Tensor", n, first)), b.call("exp", rest))


@ATEN.composed(aten=["exp2"], promote=True, ulps=4)
def exp2(b: Build, self: Lanes) -> Any:
    """2 to the power of the element."""
    return exp_of_multiple(b, self, log(2.0))


@ATEN.composed(aten=["expm1"], promote=True, ulps=4)
def expm1(b: Build, self: Lanes) -> Any:
    """e^x - 1 as tanh(x/2) (e^x + 1), which has no difference that cancels near 0."""
    half = b.call("tanh", b.call("mul.Tensor", self, 0.5))
    return b.call("mul.Tensor", half, b.call("add.Tensor", b.call("exp", self), 1.0))


@ATEN.composed(aten=["log1p"], promote=True, ulps=4)
def log1p(b: Build, self: Lanes) -> Any:
    """The natural logarithm of 1 + x, exact near 0."""
    out = log_of_one_plus(b, self)
    return b.call("where.self", b.call("eq.Scalar", self, 0), self, out)


@ATEN.composed(aten=["log2"], promote=True, ulps=4)
def log2(b: Build, self: Lanes) -> Any:
    """The logarithm to base 2."""
    return b.call("mul.Tensor", b.call("log", self), 1.0 / log(2.0))


@ATEN.composed(aten=["log10"], promote=True, ulps=4)
def log10(b: Build, self: Lanes) -> Any:
    """The logarithm to base 10."""
    return b.call("mul.Tensor", b.call("log", self), 1.0 / log(10.0))


def _distance(b: Build, x: Any, y: Any) -> Any:
    """-|x - y|, 0 where they are equal: infinities too."""
    difference = b.call("neg", b.call("abs", b.call("sub.Tensor", x, y)))
    return b.call("where.self", b.call("eq.Tensor", x, y), 0.0, difference)


@ATEN.composed(aten=["logaddexp"], promote=True, ulps=4)
def logaddexp(b: Build, self: Lanes, other: Lanes) -> Any:
    """log(e^x + e^y) without overflow."""
    rest = log_of_one_plus_exp(b, _distance(b, self, other))
    return b.call("add.Tensor", b.call("maximum", self, other), rest)


@ATEN.composed(aten=["logaddexp2"], promote=True, ulps=8)
def logaddexp2(b: Build, self: Lanes, other: Lanes) -> Any:
    """log2(2^x + 2^y) without overflow."""
    rest = log_of_one_plus_exp(b, b.call("mul.Tensor", _distance(b, self, other), log(2.0)))
    return b.call("add.Tensor", b.call("maximum", self, other), b.call("mul.Tensor", rest, 1.0 / log(2.0)))


def hyperbolic_cosine(b: Build, x: Any) -> Any:
    """(e^|x| + e^-|x|) / 2."""
    e = b.call("exp", b.call("abs", x))
    return b.call("mul.Tensor", b.call("add.Tensor", e, b.call("reciprocal", e)), 0.5)


@ATEN.composed(aten=["cosh"], promote=True, ulps=4)
def cosh(b: Build, self: Lanes) -> Any:
    """The hyperbolic cosine."""
    return hyperbolic_cosine(b, self)


@ATEN.composed(aten=["sinh"], promote=True, ulps=4)
def sinh(b: Build, self: Lanes) -> Any:
    """The hyperbolic sine as tanh(x) cosh(x): the difference of two exponentials would cancel near 0."""
    return b.call("mul.Tensor", b.call("tanh", self), hyperbolic_cosine(b, self))


def _or_log_of_twice(b: Build, x: Any, otherwise: Any) -> Any:
    """log(2 x) where x is so large that its square may overflow."""
    large = b.call("add.Tensor", b.call("log", x), log(2.0))
    return b.call("where.self", b.call("gt.Scalar", x, _LARGE), large, otherwise)


@ATEN.composed(aten=["asinh"], promote=True, ulps=4)
def asinh(b: Build, self: Lanes) -> Any:
    """The inverse hyperbolic sine, log1p(|x| + x² / (1 + sqrt(x² + 1))) with the sign of x."""
    x = b.call("abs", self)
    square = b.call("mul.Tensor", x, x)
    root = b.call("sqrt", b.call("add.Tensor", square, 1.0))
    rest = b.call("div.Tensor", square, b.call("add.Tensor", root, 1.0))
    out = log_of_one_plus(b, b.call("add.Tensor", x, rest))
    return with_sign_of(b, self, _or_log_of_twice(b, x, out), keeps_zero=True)


@ATEN.composed(aten=["acosh"], promote=True, ulps=4)
def acosh(b: Build, self: Lanes) -> Any:
    """The inverse hyperbolic cosine: with t = x - 1, log1p(t + sqrt(t (t + 2)))."""
    t = b.call("sub.Tensor", self, 1.0)
    root = b.call("sqrt", b.call("mul.Tensor", t, b.call("add.Tensor", t, 2.0)))
    # sqrt is the one that knows the domain: below -1 the product is positive again.
    root = b.call("where.self", b.call("lt.Scalar", self, 0.0), b.call("sqrt", self), root)
    return _or_log_of_twice(b, self, log_of_one_plus(b, b.call("add.Tensor", t, root)))


@ATEN.composed(aten=["atanh"], promote=True, ulps=4)
def atanh(b: Build, self: Lanes) -> Any:
    """The inverse hyperbolic tangent, log1p(2|x| / (1 - |x|)) / 2 with the sign of x."""
    x = b.call("abs", self)
    ratio = b.call("div.Tensor", b.call("mul.Tensor", x, 2.0), b.call("sub.Tensor", 1.0, x))
    return with_sign_of(b, self, b.call("mul.Tensor", log_of_one_plus(b, ratio), 0.5), keeps_zero=True)


@ATEN.composed(aten=["logit"], promote=True, ulps=4)
def logit(b: Build, self: Lanes, *, eps: Number | None = None) -> Any:
    """log(x / (1 - x)), x limited to [eps, 1 - eps] first: with m the smaller of x and 1 - x, log1p(|1 - 2x| / m)."""
    x = self if eps is None else b.call("minimum", b.call("maximum", self, float(eps)), 1.0 - eps)
    smaller = b.call("minimum", x, b.call("sub.Tensor", 1.0, x))
    offset = b.call("sub.Tensor", b.call("mul.Tensor", x, 2.0), 1.0)
    out = log_of_one_plus(b, b.call("div.Tensor", b.call("abs", offset), smaller))
    return with_sign_of(b, offset, out)


def _times_log(b: Build, x: Any, y: Any, logarithm: Any) -> Any:
    """x times a logarithm, 0 where x is 0, NaN where y is."""
    out = b.call("where.self", b.call("eq.Scalar", x, 0.0), 0.0, b.call("mul.Tensor", x, logarithm))
    return b.call("where.self", b.call("ne.Tensor", y, y), y, out)


def _as_tensors(b: Build, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands, of which one may be a Python number, as tensors."""
    return (number(b, x, y) if not b.element(x) else x, number(b, y, x) if not b.element(y) else y)


@ATEN.composed(aten=["xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other"], promote=True, ulps=4)
def xlogy(b: Build, self: Lanes, other: Lanes) -> Any:
    """x log(y), 0 where x is 0."""
    x, y = _as_tensors(b, self, other)
    return _times_log(b, x, y, b.call("log", y))


@ATEN.composed(
    aten=["special_xlog1py", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar"], promote=True, ulps=4
)
def xlog1py(b: Build, self: Lanes, other: Lanes) -> Any:
    """x log(1 + y), 0 where x is 0."""
    x, y = _as_tensors(b, self, other)
    return _times_log(b, x, y, log_of_one_plus(b, y))


@ATEN.composed(aten=["special_entr"], promote=True, ulps=4)
def entr(b: Build, self: Lanes) -> Any:
    """-x log(x); 0 at 0, minus infinity below."""
    out = b.call("neg", b.call("mul.Tensor", self, b.call("log", self)))
    out = b.call("where.self", b.call("eq.Scalar", self, 0.0), 0.0, out)
    return b.call("where.self", b.call("lt.Scalar", self, 0.0), float("-inf"), out)


_AROUND_ZERO = Sample(((3, 65),), low=-3.0, high=3.0)
_SMALL = Sample(((2, 7),), low=-1e-3, high=1e-3)
_POSITIVE = Sample(((3, 65),), low=0.01, high=9.0)
for _entry in (exp2, expm1, sinh, cosh, asinh):
    ATEN.samples(_entry, _AROUND_ZERO, _SMALL)
for _entry in (log2, log10, entr):
    ATEN.samples(_entry, _POSITIVE)
ATEN.samples(log1p, Sample(((3, 65),), low=-0.99, high=9.0), _SMALL)
ATEN.samples(acosh, Sample(((3, 65),), low=1.0, high=9.0))
ATEN.samples(atanh, Sample(((3, 65),), low=-0.99, high=0.99), _SMALL)
ATEN.samples(logit, Sample(((3, 65),), low=0.01, high=0.99), Sample(((3, 5),), {"eps": 0.1}, low=0.0, high=1.0))
for _entry in (logaddexp, logaddexp2):
    ATEN.samples(_entry, Sample(((2, 3, 65), (65,)), low=-3.0, high=3.0))
for _entry in (xlogy, xlog1py):
    ATEN.samples(_entry, Sample(((2, 3, 65), (65,)), low=0.1, high=3.0))
