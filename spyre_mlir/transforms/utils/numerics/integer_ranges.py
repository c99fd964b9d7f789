"""Ranges of a program's integers: bounds from constants, types and arithmetic.

The device has its integers as floats: DL16 counts to 1,024, FP32 to 2^24. Bounds decide which of the two is enough; a
value without bounds of its own has those of FP32, beyond which the machine faults.

Decision: docs/decisions/0055-integers-by-bounds.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import floor, inf, isfinite, isnan, prod

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.dialects.spyre.named_values import FirstOnesAttr, IotaAttr
from spyre_mlir.dialects.tensors import element_of, integer_bits, is_unsigned, shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import DL16, EXACT_INTEGERS, FP32
from spyre_mlir.ops.native import activations, floor_division, pointwise, reductions
from spyre_mlir.ops.table import OpEntry

IntegerBounds = tuple[int, int]
FloatBounds = tuple[float, float]

NARROW: IntegerBounds = (-EXACT_INTEGERS[DL16.name], EXACT_INTEGERS[DL16.name])
WIDE: IntegerBounds = FP32.integers

# Integers of up to this many bits are all exact in FP32.
MOST_SHORT_BITS = 16


def is_integer(element: Attribute) -> bool:
    """Return whether an element type is an integer type; booleans are excluded."""
    return isinstance(element, IntegerType) and element != i1


def holds(element: Attribute) -> IntegerBounds:
    """Return the integers of an element type that the device can represent."""
    if 0 < integer_bits(element) <= MOST_SHORT_BITS:
        return type_range(element)
    return (0, WIDE[1]) if is_unsigned(element) else WIDE


def type_range(element: Attribute) -> IntegerBounds:
    """Return the integers of an integer or truth type, whether or not the device can represent them."""
    bits = integer_bits(element)
    if bits == 1:
        return 0, 1
    return (0, 2**bits - 1) if is_unsigned(element) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def wraps(element: Attribute) -> bool:
    """Return whether integers of a type wrap around, as in torch; longer ones are a fault there."""
    return 1 < integer_bits(element) <= MOST_SHORT_BITS


def converts_to_integers(op: loop.NestOp) -> bool:
    """Return whether a nest makes integers of floats."""
    return is_integer(element_of(op.result)) and any(not isinstance(element_of(v), IntegerType) for v in op.inputs)


def inside(bounds: FloatBounds, limits: FloatBounds) -> bool:
    """Return whether all of `bounds` lies in `limits`."""
    return limits[0] <= bounds[0] and bounds[1] <= limits[1]


def _around(*numbers: float) -> FloatBounds:
    return min(numbers), max(numbers)


def _products(a: FloatBounds, b: FloatBounds) -> FloatBounds:
    return _around(*(x * y if x and y else 0 for x in a for y in b))  # an unknown bound, infinity, times 0 too


def _quotients(a: FloatBounds, b: FloatBounds) -> FloatBounds:
    divisors = [n for n in (*b, -1, 1) if n != 0 and b[0] <= n <= b[1]]
    return _around(*(x // y for x in a for y in divisors)) if divisors else WIDE


def _floor(number: float) -> float:
    return floor(number) if isfinite(number) else number


# Bounds of a function from those of its operands, integers or floats.
BOUNDS: dict[str, Callable[[Sequence[FloatBounds]], FloatBounds]] = {
    pointwise.add.name: lambda x: (x[0][0] + x[1][0], x[0][1] + x[1][1]),
    pointwise.sub.name: lambda x: (x[0][0] - x[1][1], x[0][1] - x[1][0]),
    pointwise.mul.name: lambda x: _products(x[0], x[1]),
    pointwise.maximum.name: lambda x: (max(x[0][0], x[1][0]), max(x[0][1], x[1][1])),
    pointwise.minimum.name: lambda x: (min(x[0][0], x[1][0]), min(x[0][1], x[1][1])),
    pointwise.where.name: lambda x: _around(*x[1], *x[2]),
    pointwise.neg.name: lambda x: (-x[0][1], -x[0][0]),
    pointwise.abs.name: lambda x: (max(0, x[0][0], -x[0][1]), max(-x[0][0], x[0][1])),
    floor_division.floor_divide_integers.name: lambda x: _quotients(x[0], x[1]),
    activations.relu.name: lambda x: (max(0, x[0][0]), max(0, x[0][1])),
    activations.sigmoid.name: lambda _: (0, 1),
    pointwise.tanh.name: lambda _: (-1, 1),
    pointwise.floor.name: lambda x: (_floor(x[0][0]), _floor(x[0][1])),
}
_UNKNOWN: FloatBounds = (-inf, inf)
_EXTREMES = (reductions.amax, reductions.amin)
# Steps back from a conversion to integers in which bounds of its floats are looked for.
_STEPS = 16


def constant_bounds(value: Attribute, shape: Sequence[int]) -> tuple[float, float]:
    """Return the least and the largest number of a constant."""
    match value:
        case FloatAttr() | IntegerAttr():
            return value.value.data, value.value.data
        case IotaAttr():
            first, step = value.start.value.data, value.step.value.data
            last = first + step * max(0, (shape[-1] if shape else 1) - 1)
            return min(first, last), max(first, last)
        case FirstOnesAttr():
            return 0, 1
        case _:
            return WIDE


@dataclass
class Ranges:
    """Bounds of the integers and booleans of one function.

    Attributes:
        checks: whether a constant that FP32 does not have is refused; off where the caller cannot say at which op.
        beyond_device: whether a value without bounds of its own has all integers of its type, as in exact numerics.
    """

    checks: bool = True
    beyond_device: bool = False
    _known: dict[SSAValue, IntegerBounds] = field(default_factory=dict[SSAValue, IntegerBounds])
    _floats: dict[SSAValue, FloatBounds] = field(default_factory=dict[SSAValue, FloatBounds])

    def of(self, value: SSAValue) -> IntegerBounds:
        """Return the bounds of a value's elements, within its type."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _limits(self, element: Attribute) -> IntegerBounds:
        return type_range(element) if self.beyond_device and is_integer(element) else holds(element)

    def _find(self, value: SSAValue) -> IntegerBounds:
        limits = self._limits(element_of(value))
        match value.owner:
            case loop.LoopConstantOp() as op if isinstance(element_of(value), IntegerType):
                low, high = constant_bounds(op.value, shape_of(value))
                found = int(low), int(high)
                return _checked(found, value) if self.checks else found
            case loop.NestOp() as op:
                found = self.unwrapped(op)
                if (self.beyond_device or wraps(element_of(value))) and not inside(found, limits):
                    return limits
                found = max(found[0], limits[0]), min(found[1], limits[1])
                return found if op.dest is None else _whole(_around(*found, *self.of(op.dest)))
            case loop.LoopGatherOp() as op:
                return self.of(op.table)
            case loop.EmptyOp():
                return self._filled(value)
            case Block() if isinstance(value, BlockArgument):
                return _stated(value, limits)
            case _:
                return limits

    def _filled(self, value: SSAValue) -> IntegerBounds:
        """Bounds of what fills an empty tensor, all its parts together."""
        found: list[int] = []
        while True:
            users = [u.operation for u in value.uses]
            nests = [u for u in users if isinstance(u, loop.NestOp) and u.dest is value]
            if len(nests) != 1:
                return _whole(_around(*found)) if found else self._limits(element_of(value))
            found += self.unwrapped(nests[0])
            value = nests[0].result

    def unwrapped(self, op: loop.NestOp) -> IntegerBounds:
        """Return the bounds of a nest's result, before its type limits it."""
        if converts_to_integers(op):
            low, high = self._of_floats(op, _STEPS)
            return int(max(low, -(2.0**63))), int(min(high, 2.0**63))
        if not all(isinstance(element_of(v), IntegerType) for v in op.inputs):
            return self._limits(element_of(op.result))
        operands = [self.of(v) for v in op.inputs]
        entry = body_function(op.body.block)
        found = _applied(entry, operands, self._limits(element_of(op.result)))
        if op.combine is not None and loop.combiner(op.combine.data) is reductions.sum:
            times = prod(op.space.extents[name] for name in op.reduced)
            found = found[0] * times, found[1] * times
        return found

    def _of_floats(self, op: loop.NestOp, steps: int) -> FloatBounds:
        """Bounds of what a nest computes of floats: limits, rounding, and arithmetic with numbers."""
        if op.dest is not None or (op.combine is not None and loop.combiner(op.combine.data) not in _EXTREMES):
            return _UNKNOWN
        operands = [self._float(v, steps) for v in op.inputs]
        entry = body_function(op.body.block)
        rule = None if entry is None else BOUNDS.get(entry.name)
        if entry is None:
            return operands[0]
        found = _UNKNOWN if rule is None else rule(operands)
        return _UNKNOWN if any(map(isnan, found)) else found

    def _float(self, value: SSAValue, steps: int) -> FloatBounds:
        if isinstance(element_of(value), IntegerType):
            return self.of(value)
        match value.owner:
            case loop.LoopConstantOp() as op:
                return constant_bounds(op.value, shape_of(value))
            case loop.NestOp() as op if steps:
                if value not in self._floats:
                    self._floats[value] = self._of_floats(op, steps - 1)
                return self._floats[value]
            case _:
                return _UNKNOWN


def _stated(argument: BlockArgument, limits: IntegerBounds) -> IntegerBounds:
    """Bounds of an argument: what importing a constant has noted, else those of its type."""
    noted = stated_bounds(argument)
    return limits if noted is None else (max(noted[0], limits[0]), min(noted[1], limits[1]))


def stated_bounds(argument: BlockArgument) -> IntegerBounds | None:
    """Return the least and the largest integer of a constant, if the import recorded them."""
    function = argument.owner.parent_op()
    attributes: ArrayAttr[DictionaryAttr] | None = function.arg_attrs if isinstance(function, FuncOp) else None
    noted = None if attributes is None else attributes.data[argument.index].data.get("aten.bounds")
    if not isinstance(noted, DenseArrayBase):
        return None
    low, high = (int(n) for n in noted.get_values())
    return low, high


def _applied(entry: OpEntry | None, operands: Sequence[IntegerBounds], unknown: IntegerBounds) -> IntegerBounds:
    if entry is None:
        return operands[0]
    if entry.boolean:
        return 0, 1
    rule = BOUNDS.get(entry.name)
    return unknown if rule is None else _whole(rule(operands))


def _whole(bounds: FloatBounds) -> IntegerBounds:
    return int(bounds[0]), int(bounds[1])


def _checked(bounds: IntegerBounds, value: SSAValue) -> IntegerBounds:
    """The bounds of a constant, which FP32 has exactly: compositions choose by powers of two beyond every index."""
    number = next((n for n in bounds if abs(n) // (n & -n or 1) > WIDE[1]), None)
    if number is not None:
        raise UnsupportedError(
            f"the integer {number} in a constant of type {value.type}",
            hint=f"integers on the device are exact from {WIDE[0]} to {WIDE[1]}",
        )
    return bounds


__all__ = [
    "BOUNDS",
    "MOST_SHORT_BITS",
    "NARROW",
    "WIDE",
    "FloatBounds",
    "IntegerBounds",
    "Ranges",
    "constant_bounds",
    "converts_to_integers",
    "holds",
    "inside",
    "is_integer",
    "stated_bounds",
    "type_range",
    "wraps",
]
