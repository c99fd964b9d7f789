"""Floor division and remainders.

A quotient that is rounded up to an integer is one too large: the exact remainder then has the wrong sign.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, frexp, isfinite, isinf, ldexp
from typing import TypeAlias, cast

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import with_sign_of
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.helpers.reduction_dims import SHORT_BITS
from spyre_mlir.ops.native.floor_division import FLOOR_DIVIDE_INTEGERS
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# What divides a tensor: another, or a number.
Divisor: TypeAlias = "Value | Number"
# Quotients and divisors are cut in two parts of half the bits of DL16, so that their products are exact.
_HALF_BITS = 5


def _parts(y: Divisor) -> list[Divisor]:
    """Numbers that add up to one, the larger first, with few bits each."""
    if isinstance(y, int):
        return [y]
    if not isinstance(y, Value):
        mantissa, exponent = frexp(y)
        first = ldexp(round(mantissa * 2**_HALF_BITS), exponent - _HALF_BITS)
        return [y] if first == y else [first, y - first]
    if not y.is_float:
        return [y]
    # Veltkamp: the difference from a multiple of 2^5 + 1 keeps the leading bits.
    wide = y * float(2**_HALF_BITS + 1)
    leading = wide - (wide - y)
    return [leading, y - leading]


def _rest(x: Value, quotient: Value, y: Divisor) -> Value:
    """x - quotient * y."""
    if not isinstance(y, Value) and not isfinite(y):
        return x - quotient  # the quotient is 0, or no number
    divisors = _parts(y)
    for factor in _parts(quotient):
        for part in divisors:
            x = x - factor * part
    return x


def _floor_of_quotient(b: Build, x: Value, y: Divisor) -> Value:
    """The rounded quotient's floor, in the element type of the operands."""
    return b.cast((x / y).floor(), like=x) if x.is_float else b.call(FLOOR_DIVIDE_INTEGERS, x, y)


def _is_below_zero(rest: Value, y: Divisor) -> Value:
    """Where a remainder has another sign than the divisor."""
    if not isinstance(y, Value):
        return rest.lt(0) if y > 0 else rest.gt(0)
    return y.gt(0).where(rest, -rest).lt(0)


def _operands(b: Build, x: Value, y: Divisor) -> tuple[Value, Divisor]:
    """A tensor to divide, and what divides it: a tensor, or a number of the same kind."""
    if x.number is not None:
        x = number(b, x.number, y if isinstance(y, Value) else x)
    if x.is_bool:
        raise UnsupportedError("a floor division of truth values", hint="convert them to integers first")
    known = y.number if isinstance(y, Value) else y
    if known is None:
        return x, y
    return x, float(known) if x.is_float else int(known)


def _with_room(b: Build, x: Value, y: Divisor, compute: Callable[[Build, Value, Divisor], Value]) -> Value:
    """`compute` on operands, short integers as longer ones: these have the magnitude of their least number."""
    x, y = _operands(b, x, y)
    element = x.element
    if element in SHORT_BITS:
        x = b.cast(x, "i32")
        y = b.cast(y, "i32") if isinstance(y, Value) else y
    return b.cast(compute(b, x, y), element)


def floor_division(b: Build, x: Value, y: Divisor) -> Value:
    """The largest integer not above x / y; no number for an infinite x, but by 0."""
    x, y = _operands(b, x, y)
    quotient = _rounded_down(b, x, y)
    if not x.is_float or y == 0:
        return quotient
    # 0 with the sign of the quotient leaves that as it is; infinity times 0 is no number.
    if not isinstance(y, Value):
        return quotient + x * copysign(0.0, y)
    zero = x * 0.0
    return quotient + y.gt(0).where(zero, y.lt(0).where(-zero, 0.0))


def _rounded_down(b: Build, x: Value, y: Divisor) -> Value:
    quotient = _floor_of_quotient(b, x, y)
    if not x.is_float or (not isinstance(y, Value) and abs(y) == 1):
        return quotient
    if not isinstance(y, Value) and isinf(y):
        return _is_below_zero(x, y).where(-1.0, quotient)
    rest = _rest(x, quotient, y)
    rest = quotient.eq(0).where(x, rest) if isinstance(y, Value) else rest  # 0 times an infinite divisor is no number
    return _is_below_zero(rest, y).where(quotient - 1, quotient)


def _below_zero(x: Divisor) -> Divisor:
    """The magnitude of an integer with the other sign: the least integer has no magnitude in its type."""
    return -abs(x)


def truncated_division(b: Build, x: Value, y: Divisor) -> Value:
    """x / y without its fraction; a quotient of float32 is rounded first, as in eager."""
    x, y = _operands(b, x, y)
    if x.element == "f32":
        return _truncated_as_rounded(b, x, y)
    return _with_room(b, x, y, _truncated)


def _truncated_as_rounded(b: Build, x: Value, y: Divisor) -> Value:
    """The whole part of the quotient in float32; where the device rounds it up to a whole number, the rest is below 0.

    A quotient that is rounded up in float32 leaves a rest of no more than 2^-24 of x, which does not count.
    """
    quotient = b.rounded(x / y)
    whole = quotient.lt(0).where(-(-quotient).floor(), quotient.floor())
    if not isinstance(y, Value) and (not isfinite(y) or abs(frexp(y)[0]) == 0.5):
        return whole  # nothing is rounded
    size = abs(x)
    rest = _rest(size, abs(whole), abs(y))
    nearer = whole.lt(0).where(whole + 1.0, whole - 1.0)
    return (rest + size * 2.0**-23).lt(0).where(nearer, whole)


def _truncated(b: Build, x: Value, y: Divisor) -> Value:
    magnitude = abs if x.is_float else _below_zero
    quotient = _rounded_down(b, cast("Value", magnitude(x)), magnitude(y))
    negative = x.lt(0)
    if isinstance(y, Value):
        negative = negative.ne(y.lt(0))
    elif y < 0:
        negative = x.ge(0)
    return negative.where(-quotient, quotient)


@ATEN.composed(aten=["div.Tensor_mode", "div.Scalar_mode"], promote=True, ulps=2)
def div_mode(b: Build, self: Value, other: Value, *, rounding_mode: str | None = None) -> Value:
    """The quotient, rounded towards minus infinity ("floor"), towards 0 ("trunc"), or not at all."""
    if rounding_mode is None:
        return self / other
    return (floor_division if rounding_mode == "floor" else truncated_division)(b, self, other)


@ATEN.composed(aten=["remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor"], promote=True, ulps=8)
def remainder(b: Build, self: Value, other: Value) -> Value:
    """Remainder of a division rounded towards minus infinity; it has the sign of the divisor."""
    return floored_remainder(b, self, other)


def floored_remainder(b: Build, x: Value, y: Divisor) -> Value:
    """x - y * floor(x / y)."""
    return _with_room(b, x, y, _floored_rest)


def _floored_rest(b: Build, x: Value, y: Divisor) -> Value:
    if not x.is_float:
        # The product may be beyond the integers of the device; that of the whole number nearer to 0 is not.
        quotient = floor_division(b, x, y)
        below = b.cast(quotient.lt(0), like=x)
        return _rest(x, quotient + below, y) + below * y
    rest = _rest(x, _floor_of_quotient(b, x, y), y)
    # A smaller x remains as a whole, also under an infinite y.
    rest = abs(x).lt(abs(y)).where(x, rest)
    return _is_below_zero(rest, y).where(rest + y, rest)


@ATEN.composed(aten=["fmod.Tensor", "fmod.Scalar"], promote=True, ulps=8)
def fmod(b: Build, self: Value, other: Value) -> Value:
    """Remainder of a division rounded towards 0; it has the sign of `self`."""
    return _with_room(b, self, other, _truncated_rest)


def _truncated_rest(b: Build, x: Value, y: Divisor) -> Value:
    if x.is_float:
        rest = with_sign_of(x, _floored_rest(b, abs(x), abs(y)))
        return rest.eq(0).where(x * 0.0, rest)
    above, below = cast("Value", _below_zero(x)), _below_zero(y)
    rest = _rest(above, _rounded_down(b, above, below), below)
    return x.lt(0).where(rest, -rest)


_FAR = Sample(((2, 3, 65), (65,)), low=-9.0, high=9.0)
_WHOLE = Sample(((2, 3, 65), (65,)), low=1.0, high=99.0, whole=True)
for _entry in (remainder, fmod):
    ATEN.samples(_entry, _FAR, Sample(((4, 5), (4, 5)), low=0.5, high=5.0), _WHOLE)
for _mode in ("floor", "trunc"):
    _rounding = {"rounding_mode": _mode}
    ATEN.samples(div_mode, Sample(_FAR.shapes, _rounding, low=-9.0, high=9.0))
    ATEN.samples(div_mode, Sample(_WHOLE.shapes, _rounding, low=1.0, high=99.0, whole=True))
