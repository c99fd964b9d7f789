"""Bit operations on integers, by arithmetic: shifts are products and quotients, the rest follows from `and`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add, mul

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.math.division import floor_division, floored_remainder
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.helpers.reduction_dims import SHORT_BITS
from spyre_mlir.ops.helpers.truth_values import negated
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

_MOST = 2**24  # whole numbers below it are exact on the device


def _split(b: Build, x: Value) -> tuple[Value, Value]:
    """The number without its lowest bit, halved; and that bit. The sign spreads, as in two's complement."""
    half = floor_division(b, x, 2)
    return half, x - half * 2


def _bits(x: Value) -> int:
    """The bits of an integer type."""
    return (SHORT_BITS | {"i32": 32}).get(x.element, 64)


def _and_number(b: Build, x: Value, mask: int) -> Value:
    """x & mask: remainders by powers of two, one per end of a run of ones."""
    bits = _bits(x)
    signed = not x.element.startswith("u")
    mask %= 2**bits
    out: Value | None = None
    for at in range(bits):  # a run of ones from `at` to `end`: x mod 2^end - x mod 2^at
        if not mask >> at & 1 or (at and mask >> (at - 1) & 1):
            continue
        end = next(e for e in range(at, bits + 1) if not mask >> e & 1)
        # Up to the sign bit, the remainder is the number itself.
        upper = x if end == bits and signed else floored_remainder(b, x, 2**end)
        run = upper if at == 0 else upper - floored_remainder(b, x, 2**at)
        out = run if out is None else out + run
    return x * 0 if out is None else out


def _and(b: Build, x: Value, y: Value) -> Value:
    if x.number is not None:
        x, y = y, x
    if y.number is not None:
        return _and_number(b, x, int(y.number))
    bits, signed = SHORT_BITS.get(x.element), not x.element.startswith("u")
    if bits is None:
        bits, signed = _known_bits(b, x, y)
    return reduce(add, _common_bits(b, x, y, bits, signed=signed))


def _known_bits(b: Build, x: Value, y: Value) -> tuple[int, bool]:
    """Bits that two tensors of long integers have in common, and whether the last one is a sign.

    Raises:
        UnsupportedError: they may be beyond the integers of the device.
    """
    bounds = [b.bounds(x), b.bounds(y)]
    known = [one for one in bounds if one is not None and one[0] > -_MOST and one[1] < _MOST]
    if len(known) < len(bounds):
        raise UnsupportedError(
            f"bitwise operations of two {x.element} tensors that may be beyond {_MOST - 1:,}",
            hint="bound them, as `x & 0xffff` does; 8 and 16 bits, or a number, are possible too",
        )
    signed = all(low < 0 for low, _ in known)
    if signed:
        return max(max(-low - 1, high).bit_length() for low, high in known) + 1, True
    return max(1, min(high.bit_length() for low, high in known if low >= 0)), False


def _common_bits(b: Build, x: Value, y: Value, bits: int, *, signed: bool) -> Iterator[Value]:
    """The bits that both have, each with its weight."""
    for place in range(bits):
        if place == bits - 1 and signed:
            one_x, one_y, weight = -x, -y, -(2**place)  # what is left is 0 or -1
        else:
            (x, one_x), (y, one_y), weight = _split(b, x), _split(b, y), 2**place
        yield one_x * one_y * weight


def _truth_first(x: Value, y: Value) -> tuple[Value, Value] | None:
    """Both operands if they are truth values, the first one a tensor."""
    if not (x.is_bool and y.is_bool):
        return None
    return (x, y) if x.number is None else (y, x)


def _truth(x: Value) -> Value | bool:
    """Numbers as truth values: whether they are not 0."""
    if x.number is not None:
        return bool(x.number)
    return x if x.is_bool else x.ne(0)


@ATEN.composed(aten=["logical_not"], ulps=1)
def logical_not(self: Value) -> Value:
    """1 where the element is 0, else 0."""
    return self.where(False, True) if self.is_bool else self.eq(0)


@ATEN.composed(aten=["logical_and"], ulps=1)
def logical_and(b: Build, self: Value, other: Value) -> Value:
    """1 where both elements are not 0, else 0."""
    return b.call("where.self", _truth(self), _truth(other), False)


@ATEN.composed(aten=["logical_or"], ulps=1)
def logical_or(b: Build, self: Value, other: Value) -> Value:
    """1 where an element is not 0, else 0."""
    return b.call("where.self", _truth(self), True, _truth(other))


@ATEN.composed(aten=["logical_xor"], ulps=1)
def logical_xor(b: Build, self: Value, other: Value) -> Value:
    """1 where exactly one of two elements is not 0, else 0."""
    y = _truth(other)
    return b.call("where.self", _truth(self), not y if isinstance(y, bool) else negated(y), y)


@ATEN.composed(aten=["bitwise_not"], promote=True, ulps=1)
def bitwise_not(b: Build, self: Value) -> Value:
    """Inverts every bit: logical not for truth values, -x - 1 for integers."""
    if self.is_bool:
        return self.where(False, True)
    if self.element.startswith("u"):
        return number(b, 2 ** int(self.element[2:]) - 1, self) - self
    return -self - 1


@ATEN.composed(aten=["bitwise_and.Tensor"], promote=True, ulps=1)
def bitwise_and(b: Build, self: Value, other: Value) -> Value:
    """The bits that both have."""
    if (truth := _truth_first(self, other)) is not None:
        return truth[0].where(truth[1], False)
    return _and(b, self, other)


@ATEN.composed(aten=["bitwise_or.Tensor"], promote=True, ulps=1)
def bitwise_or(b: Build, self: Value, other: Value) -> Value:
    """The bits that one has: a + (b - (a & b))."""
    if (truth := _truth_first(self, other)) is not None:
        return truth[0].where(True, truth[1])
    return self + (other - _and(b, self, other))  # no step is beyond the operands


@ATEN.composed(aten=["bitwise_xor.Tensor"], promote=True, ulps=1)
def bitwise_xor(b: Build, self: Value, other: Value) -> Value:
    """The bits that exactly one has: (a - (a & b)) + (b - (a & b))."""
    if (truth := _truth_first(self, other)) is not None:
        return truth[0].where(negated(truth[1]), truth[1])
    both = _and(b, self, other)
    return (self - both) + (other - both)


def _shifted(
    b: Build, x: Value, count: Value, most: int, shift: Callable[[Value | int], Value], beyond: Value | int
) -> Value:
    """The result of `shift` for 2 to `count`; `beyond` where the count is below 0 or above `most`."""
    if count.number is not None:
        known = int(count.number)
        return shift(2**known) if 0 <= known <= most else x * 0 + beyond
    bounds = b.bounds(count)
    if bounds is not None and bounds[0] >= 0 and bounds[1] <= most:
        return shift(_power_of_two(b, count, bounds[1]))
    inside = count.clamp(min=0, max=most)
    return inside.ne(count).where(beyond, shift(_power_of_two(b, inside, most)))


def _power_of_two(b: Build, count: Value, most: int) -> Value:
    """2 to a whole number up to `most`, bit by bit of the exponent: a product of choices, so it is exact."""
    return reduce(mul, _choices(b, count, max(1, most.bit_length())))


def _choices(b: Build, count: Value, bits: int) -> Iterator[Value]:
    """Per bit of a whole number, 2 to the power of that bit where it is set, else 1."""
    for place in range(bits):
        count, one = _split(b, count)
        weight = 2**2**place
        if weight < _MOST:
            yield one * (weight - 1) + 1
        else:  # the device does not have `weight - 1`
            root = one * (2**2 ** (place - 1) - 1) + 1
            yield root * root


@ATEN.composed(aten=["bitwise_and.Scalar", "bitwise_and.Scalar_Tensor"], promote=True, ulps=1)
def bitwise_and_number(b: Build, self: Value, other: Value) -> Value:
    """The bits that an element and a number have."""
    return b.call("bitwise_and.Tensor", self, other)


@ATEN.composed(aten=["bitwise_or.Scalar", "bitwise_or.Scalar_Tensor"], promote=True, ulps=1)
def bitwise_or_number(b: Build, self: Value, other: Value) -> Value:
    """The bits that an element or a number has."""
    return b.call("bitwise_or.Tensor", self, other)


@ATEN.composed(aten=["bitwise_xor.Scalar", "bitwise_xor.Scalar_Tensor"], promote=True, ulps=1)
def bitwise_xor_number(b: Build, self: Value, other: Value) -> Value:
    """The bits that either an element or a number has."""
    return b.call("bitwise_xor.Tensor", self, other)


_LEFT = ["bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "bitwise_left_shift.Scalar_Tensor"]
_RIGHT = [name.replace("left", "right") for name in _LEFT]


@ATEN.composed(aten=[*_LEFT, "__lshift__.Tensor", "__lshift__.Scalar"], promote=True, ulps=1)
def left_shift(b: Build, self: Value, other: Value) -> Value:
    """self times 2 to `other`; 0 where `other` is below 0 or not below the bits of the type."""
    x = self if self.number is None else number(b, self.number, other)
    most = _bits(x) - 1

    def scaled(power: Value | int) -> Value:
        is_sign = isinstance(power, int) and power == 2**most and not x.element.startswith("u")
        return x * (-power if is_sign else power)

    return _shifted(b, x, other, most, scaled, 0)


@ATEN.composed(aten=[*_RIGHT, "__rshift__.Tensor", "__rshift__.Scalar"], promote=True, ulps=1)
def right_shift(b: Build, self: Value, other: Value) -> Value:
    """self divided by 2 to `other`, rounded towards minus infinity; -1 or 0, by the sign of self, for other counts."""
    x = self if self.number is None else number(b, self.number, other)
    signed = not x.element.startswith("u")
    most = _bits(x) - 1 - signed  # a signed type has no 2 to the place of its sign
    sign = -b.cast(x.lt(0), like=x) if signed else 0
    return _shifted(b, x, other, most, lambda power: floor_division(b, x, power), sign)


_WHOLE = Sample(((3, 65),), low=-99.0, high=99.0, whole=True)
for _entry in (logical_and, logical_or, logical_xor):
    ATEN.samples(_entry, Sample(((3, 64), (64,))))
for _entry in (bitwise_and, bitwise_or, bitwise_xor):
    ATEN.samples(_entry, Sample(((3, 64), (64,))))
for _entry in (bitwise_and_number, bitwise_or_number, bitwise_xor_number):
    ATEN.samples(_entry, Sample(((3, 65), (3, 65)), low=-99.0, high=99.0, whole=True))
ATEN.samples(logical_not, Sample(((3, 64),)), _WHOLE)
ATEN.samples(bitwise_not, Sample(((3, 64),)), _WHOLE)
for _entry in (left_shift, right_shift):
    ATEN.samples(
        _entry,
        Sample(((2, 3, 65), (65,)), low=0.0, high=9.0, whole=True),
        Sample(((3, 5), (3, 5)), low=0.0, high=9.0, whole=True),
    )
