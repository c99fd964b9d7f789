"""Exponentials, logarithms and hyperbolic functions, in forms that keep their relative error near 0."""

from __future__ import annotations

from math import ceil, frexp, ldexp, log

from spyre_mlir.ops.annotations import Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import log_of_one_plus, log_of_one_plus_exp, with_sign_of
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# Bits of the first part of a rate: its product with a whole number of five bits is exact in DL16.
_FIRST_BITS = 5
# Beyond this exponent of e every format is at infinity or 0, and a difference of infinities is avoided.
_LARGEST = 800.0
# Above it, sqrt(x * x + 1) is x in every format, and x * x may overflow.
_LARGE = 16384.0


def exp_of_multiple(x: Value, rate: float) -> Value:
    """e^(rate x), which a rounded product rate * x would spoil: the error of an exponent is a relative error here.

    x = n + f with n whole; rate = r1 + r2 with few bits in r1, so that r1 n is exact: e^(r1 n) e^(r2 n + rate f).
    """
    mantissa, exponent = frexp(rate)
    first = ldexp(round(mantissa * 2**_FIRST_BITS), exponent - _FIRST_BITS)
    bound = float(ceil(_LARGEST / abs(rate)))
    x = x.maximum(-bound).minimum(bound)
    n = x.floor()
    rest = (x - n) * rate
    rest = n * (rate - first) + rest
    return (n * first).exp() * rest.exp()


@ATEN.composed(aten=["exp2"], promote=True, ulps=4)
def exp2(self: Value) -> Value:
    """2 to the power of the element."""
    return exp_of_multiple(self, log(2.0))


@ATEN.composed(aten=["expm1"], promote=True, ulps=4)
def expm1(b: Build, self: Value) -> Value:
    """e^x - 1 as tanh(x/2) (e^x + 1), which has no difference that cancels near 0."""
    half = b.call("tanh", self * 0.5)
    return half * (self.exp() + 1.0)


@ATEN.composed(aten=["log1p"], promote=True, ulps=4)
def log1p(self: Value) -> Value:
    """The natural logarithm of 1 + x, exact near 0."""
    out = log_of_one_plus(self)
    return self.eq(0).where(self, out)


@ATEN.composed(aten=["log2"], promote=True, ulps=4)
def log2(self: Value) -> Value:
    """The logarithm to base 2."""
    return self.log() * (1.0 / log(2.0))


@ATEN.composed(aten=["log10"], promote=True, ulps=4)
def log10(self: Value) -> Value:
    """The logarithm to base 10."""
    return self.log() * (1.0 / log(10.0))


def _distance(x: Value, y: Value) -> Value:
    """-|x - y|, 0 where they are equal: infinities too."""
    difference = -abs(x - y)
    return x.eq(y).where(0.0, difference)


@ATEN.composed(aten=["logaddexp"], promote=True, ulps=4)
def logaddexp(self: Value, other: Value) -> Value:
    """log(e^x + e^y) without overflow."""
    rest = log_of_one_plus_exp(_distance(self, other))
    return self.maximum(other) + rest


@ATEN.composed(aten=["logaddexp2"], promote=True, ulps=8)
def logaddexp2(self: Value, other: Value) -> Value:
    """log2(2^x + 2^y) without overflow."""
    rest = log_of_one_plus_exp(_distance(self, other) * log(2.0))
    return self.maximum(other) + rest * (1.0 / log(2.0))


def hyperbolic_cosine(x: Value) -> Value:
    """(e^|x| + e^-|x|) / 2."""
    e = abs(x).exp()
    return (e + e.reciprocal()) * 0.5


@ATEN.composed(aten=["cosh"], promote=True, ulps=4)
def cosh(self: Value) -> Value:
    """The hyperbolic cosine."""
    return hyperbolic_cosine(self)


@ATEN.composed(aten=["sinh"], promote=True, ulps=4)
def sinh(b: Build, self: Value) -> Value:
    """The hyperbolic sine as tanh(x) cosh(x): the difference of two exponentials would cancel near 0."""
    return b.call("tanh", self) * hyperbolic_cosine(self)


def _or_log_of_twice(x: Value, otherwise: Value) -> Value:
    """log(2 x) where x is so large that its square may overflow."""
    large = x.log() + log(2.0)
    return x.gt(_LARGE).where(large, otherwise)


@ATEN.composed(aten=["asinh"], promote=True, ulps=4)
def asinh(self: Value) -> Value:
    """The inverse hyperbolic sine, log1p(|x| + x² / (1 + sqrt(x² + 1))) with the sign of x."""
    x = abs(self)
    square = x * x
    root = (square + 1.0).sqrt()
    rest = square / (root + 1.0)
    out = log_of_one_plus(x + rest)
    return with_sign_of(self, _or_log_of_twice(x, out), keeps_zero=True)


@ATEN.composed(aten=["acosh"], promote=True, ulps=4)
def acosh(self: Value) -> Value:
    """The inverse hyperbolic cosine: with t = x - 1, log1p(t + sqrt(t (t + 2)))."""
    t = self - 1.0
    root = (t * (t + 2.0)).sqrt()
    # sqrt is the one that knows the domain: below -1 the product is positive again.
    root = self.lt(0.0).where(self.sqrt(), root)
    return _or_log_of_twice(self, log_of_one_plus(t + root))


@ATEN.composed(aten=["atanh"], promote=True, ulps=4)
def atanh(self: Value) -> Value:
    """The inverse hyperbolic tangent, log1p(2|x| / (1 - |x|)) / 2 with the sign of x."""
    x = abs(self)
    ratio = x * 2.0 / (1.0 - x)
    return with_sign_of(self, log_of_one_plus(ratio) * 0.5, keeps_zero=True)


@ATEN.composed(aten=["logit"], promote=True, ulps=4)
def logit(self: Value, *, eps: Number | None = None) -> Value:
    """log(x / (1 - x)), x limited to [eps, 1 - eps] first: with m the smaller of x and 1 - x, log1p(|1 - 2x| / m)."""
    x = self if eps is None else self.maximum(float(eps)).minimum(1.0 - eps)
    smaller = x.minimum(1.0 - x) + 0.0  # -0 is 0
    offset = x * 2.0 - 1.0
    out = log_of_one_plus(abs(offset) / smaller)
    return with_sign_of(offset, out)


def _times_log(x: Value, y: Value, logarithm: Value) -> Value:
    """x times a logarithm, 0 where x is 0, NaN where y is."""
    out = x.eq(0.0).where(0.0, x * logarithm)
    return y.ne(y).where(y, out)


def _as_tensors(b: Build, x: Value, y: Value) -> tuple[Value, Value]:
    """Two operands, of which one may be a Python number, as tensors."""
    return (x if x.number is None else number(b, x.number, y), y if y.number is None else number(b, y.number, x))


@ATEN.composed(aten=["xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other"], promote=True, ulps=4)
def xlogy(b: Build, self: Value, other: Value) -> Value:
    """x log(y), 0 where x is 0."""
    x, y = _as_tensors(b, self, other)
    return _times_log(x, y, y.log())


@ATEN.composed(
    aten=["special_xlog1py", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar"], promote=True, ulps=4
)
def xlog1py(b: Build, self: Value, other: Value) -> Value:
    """x log(1 + y), 0 where x is 0."""
    x, y = _as_tensors(b, self, other)
    return _times_log(x, y, log_of_one_plus(y))


@ATEN.composed(aten=["special_entr"], promote=True, ulps=4)
def entr(self: Value) -> Value:
    """-x log(x); 0 at 0, minus infinity below."""
    out = -(self * self.log())
    out = self.eq(0.0).where(0.0, out)
    return self.lt(0.0).where(float("-inf"), out)


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
