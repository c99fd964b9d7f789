"""Powers: integer exponents by squaring, roots by the hardware, other exponents by the exponential of a logarithm."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import floor, inf, isfinite, log
from operator import mul

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.math.exponentials import exp_of_multiple
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# Whole exponents up to here are products; a product per squaring and per bit.
_LARGEST_WHOLE = 64
_ROOTS = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}


def _whole_power(x: Value, exponent: int) -> Value:
    """Square and multiply."""
    return reduce(mul, _squares(x, exponent))


def _squares(x: Value, exponent: int) -> Iterator[Value]:
    """x to those powers of two that a whole exponent is the sum of."""
    while exponent:
        if exponent & 1:
            yield x
        exponent >>= 1
        if exponent:
            x = x * x


def _fraction_power(x: Value, exponent: float) -> Value:
    """x to an exponent between 0 and 1; 0 at 0, NaN below."""
    if exponent == 0.5:
        return x.sqrt()
    power = (x.log() * exponent).exp()
    # A logarithm of 0 is no number on the device.
    return x.eq(0.0).where(0.0, power)


def _power(x: Value, exponent: Number) -> Value:
    """x to an exponent above 0."""
    whole = floor(exponent)
    if whole == exponent:
        return _whole_power(x, whole)
    fraction = exponent - whole
    out = _fraction_power(x, fraction) if whole == 0 else _whole_power(x, whole) * _fraction_power(x, fraction)
    # The logarithm of minus infinity is no number. Its root is none either, and two kernels more would double x^1.5.
    return out if fraction == 0.5 else x.eq(-inf).where(inf, out)


@ATEN.composed(aten=["pow.Tensor_Scalar"], promote=True, ulps=8)
def pow(b: Build, self: Value, *, exponent: Number) -> Value:
    """self to a constant power: the integer part by squaring, the fraction by a root or a logarithm."""
    if exponent in _ROOTS and self.is_float:
        return b.call(_ROOTS[exponent], self)
    if exponent == 0:
        return b.full(self.shape, 1, self.element)
    if exponent == 1:
        return self.clone()
    if not isfinite(exponent) or abs(exponent) > _LARGEST_WHOLE:
        raise UnsupportedError(
            f"a power with exponent {exponent}", hint=f"exponents up to {_LARGEST_WHOLE} are possible"
        )
    if exponent < 0 and not self.is_float:
        raise UnsupportedError("an integer to a negative power", hint="convert it to float first")
    out = _power(self, abs(exponent))
    return out.reciprocal() if exponent < 0 else out


def _constant_base(b: Build, base: float, exponent: Value) -> Value:
    """A number to the power of a tensor."""
    if base > 0 and isfinite(base):
        return number(b, 1.0, exponent) if base == 1 else exp_of_multiple(exponent, log(base))
    return _general(b, number(b, base, exponent), exponent)


def _general(b: Build, x: Value, y: Value) -> Value:
    """|x|^y by the logarithm, then what a negative or zero base and a zero exponent ask for."""
    magnitude = abs(x)
    size = (y * magnitude.log()).exp()
    size = magnitude.eq(1.0).where(1.0, size)  # 0 times an infinite exponent is no number
    half = y * 0.5
    odd = half.floor().ne(half)
    signed = odd.where(-size, size)
    # The logarithm of a negative number is no number: what a broken exponent gives, but for minus infinity.
    whole = y.floor().eq(y)
    below = whole.where(signed, x.eq(-inf).where(size, x.log()))
    out = x.lt(0.0).where(below, size)
    at_zero = y.gt(0.0).where(number(b, 0.0, y), inf)
    out = x.eq(0.0).where(at_zero, out)
    out = y.eq(y).where(out, y)
    one = y.eq(0.0).where(1.0, out)
    return x.eq(1.0).where(1.0, one)


@ATEN.composed(aten=["pow.Tensor_Tensor", "pow.Scalar"], promote=True, ulps=16)
def pow_tensor(b: Build, self: Value, exponent: Value) -> Value:
    """self to the power of `exponent`; negative bases need integer exponents."""
    if not exponent.is_float:
        raise UnsupportedError("an integer to the power of a tensor", hint="convert one of them to float first")
    if self.number is not None:
        out = _constant_base(b, float(self.number), exponent)
        return out if out.shape == exponent.shape else out.expand(*exponent.shape)
    return _general(b, self, exponent)


ATEN.samples(
    pow,
    Sample(((3, 65),), {"exponent": 2}),
    Sample(((3, 5),), {"exponent": 0}),
    Sample(((3, 5),), {"exponent": -3}, low=0.5, high=2),
    Sample(((3, 65),), {"exponent": 2.5}, low=0.1, high=4),
    Sample(((3, 65),), {"exponent": 0.3}, low=0.0, high=4),
    Sample(((3, 65),), {"exponent": -1.7}, low=0.1, high=4),
)
ATEN.samples(pow_tensor, Sample(((2, 3, 65), (65,)), low=0.1, high=3.0))
