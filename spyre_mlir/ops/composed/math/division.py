"""Division to whole quotients, and what remains.

A quotient rounded up to a whole number is one too large: the remainder, computed exactly, then has the wrong sign.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, isinf, ldexp
from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import with_sign_of
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.helpers.reduction_dims import SHORT_BITS, is_float
from spyre_mlir.ops.native.floor_division import WHOLE_QUOTIENT
from spyre_mlir.ops.table import Sample

# Quotients and divisors are cut in two parts of half the bits of DL16, so that their products are exact.
_HALF_BITS = 5


def _parts(b: Build, y: Any) -> list[Any]:
    """Numbers that add up to one, the larger first, with few bits each."""
    if not b.element(y):
        mantissa, exponent = frexp(y)
        first = ldexp(round(mantissa * 2**_HALF_BITS), exponent - _HALF_BITS)
        return [y] if first == y or isinf(y) else [first, y - first]
    if not is_float(b, y):
        return [y]
    # Veltkamp: the difference from a multiple of 2^5 + 1 keeps the leading bits.
    wide = b.call("mul.Tensor", y, float(2**_HALF_BITS + 1))
    first = b.call("sub.Tensor", wide, b.call("sub.Tensor", wide, y))
    return [first, b.call("sub.Tensor", y, first)]


def _rest(b: Build, x: Any, quotient: Any, y: Any) -> Any:
    """x - quotient * y."""
    divisors = _parts(b, y)
    for factor in _parts(b, quotient):
        for part in divisors:
            x = b.call("sub.Tensor", x, b.call("mul.Tensor", factor, part))
    return x


def _floor_of_quotient(b: Build, x: Any, y: Any) -> Any:
    """The rounded quotient's floor, in the element type of the operands."""
    if not is_float(b, x):
        return b.call(WHOLE_QUOTIENT, x, y)
    element = b.element(x)
    return b.cast(b.call("floor", b.call("div.Tensor", x, y)), element)


def _is_below_zero(b: Build, rest: Any, y: Any) -> Any:
    """Where a remainder has another sign than the divisor."""
    if not b.element(y):
        return b.call("lt.Scalar" if y > 0 else "gt.Scalar", rest, 0)
    signed = b.call("where.self", b.call("gt.Scalar", y, 0), rest, b.call("neg", rest))
    return b.call("lt.Scalar", signed, 0)


def _magnitude(b: Build, x: Any) -> Any:
    return b.call("abs", x) if b.element(x) else abs(x)


def _operands(b: Build, x: Any, y: Any) -> tuple[Any, Any]:
    """A tensor to divide, and what divides it: a tensor, or a number of the same kind."""
    if not b.element(x):
        x = number(b, x, y)
    if b.is_bool(x):
        raise UnsupportedError("a whole quotient of truth values", hint="convert them to integers first")
    if not b.element(y):
        y = float(y) if is_float(b, x) else int(y)
    return x, y


def _with_room(b: Build, x: Any, y: Any, compute: Callable[[Build, Any, Any], Any]) -> Any:
    """`compute` on operands, short integers as longer ones: these have the magnitude of their least number."""
    x, y = _operands(b, x, y)
    element = b.element(x)
    if element in SHORT_BITS:
        x, y = (b.cast(v, "i32") if b.element(v) else v for v in (x, y))
    return b.cast(compute(b, x, y), element)


def floor_division(b: Build, x: Any, y: Any) -> Any:
    """The largest whole number not above x / y."""
    x, y = _operands(b, x, y)
    quotient = _floor_of_quotient(b, x, y)
    if not is_float(b, x):
        return quotient
    if not b.element(y) and abs(y) == 1:
        return quotient
    wrong = _is_below_zero(b, _rest(b, x, quotient, y), y)
    return b.call("where.self", wrong, b.call("sub.Tensor", quotient, 1), quotient)


def truncated_division(b: Build, x: Any, y: Any) -> Any:
    """x / y without what is behind the point."""
    return _with_room(b, x, y, _truncated)


def _truncated(b: Build, x: Any, y: Any) -> Any:
    quotient = floor_division(b, b.call("abs", x), _magnitude(b, y))
    negative = b.call("lt.Scalar", x, 0)
    if b.element(y):
        negative = b.call("ne.Tensor", negative, b.call("lt.Scalar", y, 0))
    elif y < 0:
        negative = b.call("ge.Scalar", x, 0)
    return b.call("where.self", negative, b.call("neg", quotient), quotient)


@ATEN.composed(aten=["div.Tensor_mode", "div.Scalar_mode"], promote=True, ulps=2)
def div_mode(b: Build, self: Lanes, other: Lanes, *, rounding_mode: str | None = None) -> Any:
    """The quotient, rounded towards minus infinity ("floor"), towards 0 ("trunc"), or not at all."""
    if rounding_mode is None:
        return b.call("div.Tensor", self, other)
    return (floor_division if rounding_mode == "floor" else truncated_division)(b, self, other)


@ATEN.composed(aten=["remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor"], promote=True, ulps=8)
def remainder(b: Build, self: Lanes, other: Lanes) -> Any:
    """What remains of a division rounded towards minus infinity: it has the sign of the divisor."""
    return floored_remainder(b, self, other)


def floored_remainder(b: Build, x: Any, y: Any) -> Any:
    """x - y * floor(x / y)."""
    return _with_room(b, x, y, _floored_rest)


def _floored_rest(b: Build, x: Any, y: Any) -> Any:
    if not is_float(b, x):
        # The product may be beyond the integers of the device; that of the whole number nearer to 0 is not.
        quotient = floor_division(b, x, y)
        below = b.cast(b.call("lt.Scalar", quotient, 0), b.element(x))
        rest = _rest(b, x, b.call("add.Tensor", quotient, below), y)
        return b.call("add.Tensor", rest, b.call("mul.Tensor", below, y))
    rest = _rest(b, x, _floor_of_quotient(b, x, y), y)
    # A smaller x remains as a whole, also under an infinite y.
    smaller = b.call("lt.Tensor" if b.element(y) else "lt.Scalar", b.call("abs", x), _magnitude(b, y))
    rest = b.call("where.self", smaller, x, rest)
    return b.call("where.self", _is_below_zero(b, rest, y), b.call("add.Tensor", rest, y), rest)


@ATEN.composed(aten=["fmod.Tensor", "fmod.Scalar"], promote=True, ulps=8)
def fmod(b: Build, self: Lanes, other: Lanes) -> Any:
    """What remains of a division rounded towards 0: it has the sign of `self`."""
    return _with_room(b, self, other, _truncated_rest)


def _truncated_rest(b: Build, x: Any, y: Any) -> Any:
    above, below = b.call("abs", x), _magnitude(b, y)
    if is_float(b, x):
        rest = with_sign_of(b, x, _floored_rest(b, above, below))
        return b.call("where.self", b.call("eq.Scalar", rest, 0), b.call("mul.Tensor", x, 0.0), rest)
    return with_sign_of(b, x, _rest(b, above, floor_division(b, above, below), below))


_FAR = Sample(((2, 3, 65), (65,)), low=-9.0, high=9.0)
_WHOLE = Sample(((2, 3, 65), (65,)), low=1.0, high=99.0, whole=True)
for _entry in (remainder, fmod):
    ATEN.samples(_entry, _FAR, Sample(((4, 5), (4, 5)), low=0.5, high=5.0), _WHOLE)
for _mode in ("floor", "trunc"):
    _rounding = {"rounding_mode": _mode}
    ATEN.samples(div_mode, Sample(_FAR.shapes, _rounding, low=-9.0, high=9.0))
    ATEN.samples(div_mode, Sample(_WHOLE.shapes, _rounding, low=1.0, high=99.0, whole=True))
