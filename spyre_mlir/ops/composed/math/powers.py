"""Powers: whole exponents by squaring, roots by the hardware, the rest by the exponential of a logarithm."""

from __future__ import annotations

from math import floor, inf, isfinite, log
from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Lanes, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.math.exponentials import exp_of_multiple
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.helpers.reduction_dims import is_float
from spyre_mlir.ops.table import Sample

# Whole exponents up to here are products; a product per squaring and per bit.
_LARGEST_WHOLE = 64
_ROOTS = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}


def _whole_power(b: Build, x: Any, exponent: int) -> Any:
    """Square and multiply."""
    out = None
    while exponent:
        if exponent & 1:
            out = x if out is None else b.call("mul.Tensor", out, x)
        exponent >>= 1
        if exponent:
            x = b.call("mul.Tensor", x, x)
    return out


def _fraction_power(b: Build, x: Any, exponent: float) -> Any:
    """x to an exponent between 0 and 1; 0 at 0, NaN below."""
    if exponent == 0.5:
        return b.call("sqrt", x)
    power = b.call("exp", b.call("mul.Tensor", b.call("log", x), exponent))
    # A logarithm of 0 is no number on the device.
    return b.call("where.self", b.call("eq.Scalar", x, 0.0), 0.0, power)


@ATEN.composed(aten=["pow.Tensor_Scalar"], promote=True, ulps=8)
def pow(b: Build, self: Lanes, *, exponent: Number) -> Any:
    """self to a constant power: the whole part by squaring, the rest by a root or a logarithm."""
    if exponent in _ROOTS and is_float(b, self):
        return b.call(_ROOTS[exponent], self)
    if exponent == 0:
        return b.full(b.shape(self), 1, b.element(self))
    if exponent == 1:
        return b.call("clone", self)
    if not isfinite(exponent) or abs(exponent) > _LARGEST_WHOLE:
        raise UnsupportedError(
            f"a power with exponent {exponent}", hint=f"exponents up to {_LARGEST_WHOLE} are possible"
        )
    if exponent < 0 and not is_float(b, self):
        raise UnsupportedError("an integer to a negative power", hint="convert it to float first")
    size = abs(exponent)
    whole = floor(size)
    out = None if whole == 0 else _whole_power(b, self, whole)
    if size != whole:
        root = _fraction_power(b, self, size - whole)
        out = root if out is None else b.call("mul.Tensor", out, root)
    return b.call("reciprocal", out) if exponent < 0 else out


def _constant_base(b: Build, base: float, exponent: Any) -> Any:
    """A number to the power of a tensor."""
    if base > 0 and isfinite(base):
        return number(b, 1.0, exponent) if base == 1 else exp_of_multiple(b, exponent, log(base))
    return _general(b, number(b, base, exponent), exponent)


def _general(b: Build, x: Any, y: Any) -> Any:
    """|x|^y by the logarithm, then what a negative or zero base and a zero exponent ask for."""
    size = b.call("exp", b.call("mul.Tensor", y, b.call("log", b.call("abs", x))))
    half = b.call("mul.Tensor", y, 0.5)
    odd = b.call("ne.Tensor", b.call("floor", half), half)
    signed = b.call("where.self", odd, b.call("neg", size), size)
    # The logarithm of a negative number is no number: what a broken exponent gives.
    whole = b.call("eq.Tensor", b.call("floor", y), y)
    below = b.call("where.self", whole, signed, b.call("log", x))
    out = b.call("where.self", b.call("lt.Scalar", x, 0.0), below, size)
    at_zero = b.call("where.self", b.call("gt.Scalar", y, 0.0), number(b, 0.0, y), inf)
    out = b.call("where.self", b.call("eq.Scalar", x, 0.0), at_zero, out)
    one = b.call("where.self", b.call("eq.Scalar", y, 0.0), 1.0, out)
    return b.call("where.self", b.call("eq.Scalar", x, 1.0), 1.0, one)


@ATEN.composed(aten=["pow.Tensor_Tensor", "pow.Scalar"], promote=True, ulps=16)
def pow_tensor(b: Build, self: Lanes, exponent: Lanes) -> Any:
    """self to the power of `exponent`; a negative base has powers of whole exponents only."""
    if not is_float(b, exponent):
        raise UnsupportedError("an integer to the power of a tensor", hint="convert one of them to float first")
    if not b.element(self):
        out = _constant_base(b, float(self), exponent)
        return out if b.shape(out) == b.shape(exponent) else b.call("expand", out, size=b.shape(exponent))
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
