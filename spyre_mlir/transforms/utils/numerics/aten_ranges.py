"""Ranges of a program's integers before it is decomposed: bounds from constants, types and operators.

A device has integers up to 2^24. Where bounds show that 32 or 64-bit integers stay below it, operators run on the
device; where they do not, an exact program runs them on the host, which has integers as torch has them.

Decision: docs/decisions/0159-large-integers-are-the-hosts.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import as_tensor_type, element_of, shape_of
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.utils.numerics.integer_ranges import (
    MOST_SHORT_BITS,
    WIDE,
    IntegerBounds,
    inside,
    is_integer,
    stated_bounds,
    type_range,
)

# Operands that choose rows: the host sends them as indices of 32 bits, and an index beyond a table is an error.
_INDICES = ("index", "indices")
# Operators whose results are numbers that an operand has, or is filled with.
_MOVES = frozenset(
    f"aten.{name}"
    for name in (
        *("amax", "amin", "cat", "clone", "constant_pad_nd", "copy", "flip", "gather", "index", "index_put"),
        *("index_select", "lift_fresh_copy", "masked_fill", "max", "min", "repeat", "roll", "scatter"),
        *("select_scatter", "slice_scatter", "sort", "stack", "topk", "tril", "triu", "where"),
    )
)
# Operators with a result, by its number, that counts elements of a dimension or of a tensor.
_COUNTS = {
    "aten.argmax": 0,
    "aten.argmin": 0,
    "aten.argsort": 0,
    "aten.max": 1,
    "aten.min": 1,
    "aten.sort": 1,
    "aten.topk": 1,
}
# Operators that multiply on the way to results of 8 or 16 bits, and have no bounds above.
_MULTIPLYING = frozenset(
    f"aten.{name}"
    for name in (
        *("addbmm", "addcmul", "addmm", "addmv", "baddbmm", "bmm", "convolution", "cumprod"),
        *("linear", "matmul", "mm", "pow", "prod"),
    )
)
_ZERO_TOO = frozenset(["aten.tril", "aten.triu"])
_FILLED = {
    "aten.zeros_like": 0,
    "aten.new_zeros": 0,
    "aten.ones_like": 1,
    "aten.new_ones": 1,
}

Arguments = Mapping[str, Any]


@dataclass
class AtenRanges:
    """Bounds of the integers and truth values of a function at the aten level."""

    _known: dict[SSAValue, IntegerBounds] = field(default_factory=dict[SSAValue, IntegerBounds])

    def of(self, value: SSAValue) -> IntegerBounds:
        """Return the bounds of a value's elements; those of its type if nothing else is known."""
        if value not in self._known:
            whole = type_range(element_of(value))
            found = self._find(value)
            self._known[value] = whole if found is None or not inside(found, whole) else found
        return self._known[value]

    def note(self, value: SSAValue) -> None:
        """Find the bounds of a value, if it has integers, while the op that makes it is there."""
        if as_tensor_type(value.type) is not None and isinstance(element_of(value), IntegerType):
            self.of(value)

    def replaced(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Let values that stand for others have their bounds too."""
        for before, after in zip(old, new, strict=True):
            if before in self._known:
                self._known[after] = self._known[before]

    def beyond(self, op: AtenOp) -> str | None:
        """Return why an operator needs larger integers than the device has; None if it does not."""
        chosen = {id(v) for name, given in op.arguments().items() if name in _INDICES for v in _values(given)}
        for value in (*op.operands, *op.results):
            if id(value) in chosen or as_tensor_type(value.type) is None:
                continue
            element = element_of(value)
            if not is_integer(element):
                continue
            # Short integers wrap on the device too; what does not is a step before that.
            short = cast(IntegerType, element).width.data <= MOST_SHORT_BITS
            low, high = self._before_wrapping(value) if short else self.of(value)
            if not inside((low, high), WIDE):
                return f"its integers may be as large as {max(-low, high):,}, and the device has {WIDE[1]:,}"
        return None

    def _before_wrapping(self, value: SSAValue) -> IntegerBounds:
        """Bounds of what becomes a short integer."""
        if isinstance(op := value.owner, AtenOp) and operator_name(op.overload) in _MULTIPLYING:
            return 2 * WIDE[0], 2 * WIDE[1]
        return self._find(value) or (0, 0)

    def _find(self, value: SSAValue) -> IntegerBounds | None:
        if isinstance(value, BlockArgument):
            return stated_bounds(value)
        op = value.owner
        if not isinstance(op, AtenOp):
            return None
        name, given = operator_name(op.overload), op.arguments()
        number = next(n for n, result in enumerate(op.results) if result is value)
        if _COUNTS.get(name) == number:
            return 0, max(0, max(prod(shape_of(op.operands[0])), 1) - 1)
        if name in _FILLED:
            return _FILLED[name], _FILLED[name]
        if name in _MOVES or (op.entry is not None and op.entry.family is Family.VIEW):
            return self._moved(op, given, zero=name in _ZERO_TOO)
        rule = _RULES.get(name)
        return None if rule is None else rule(_Call(op, given, self))

    def _moved(self, op: AtenOp, given: Arguments, *, zero: bool) -> IntegerBounds | None:
        """Bounds of all numbers that an operator moves: tensors of the result's type, and what it fills with."""
        if given.get("accumulate") or given.get("reduce") is not None:
            return None
        kind = element_of(op.results[0])
        tensors = [v for v in op.operands if element_of(v) == kind]
        chosen = {id(v) for name, one in given.items() if name in _INDICES for v in _values(one)}
        bounds = [self.of(v) for v in tensors if id(v) not in chosen]
        fills = [given[k] for k in ("self", "other", "value", "src") if isinstance(given.get(k), int | float)]
        if any(int(n) != n for n in fills) or not bounds + fills:
            return None
        bounds += [(int(n), int(n)) for n in fills] + [(0, 0)] * zero
        return min(low for low, _ in bounds), max(high for _, high in bounds)


@dataclass(frozen=True)
class _Call:
    """An operator with its arguments, for the rules below."""

    op: AtenOp
    given: Arguments
    ranges: AtenRanges

    def bounds(self, name: str = "self") -> IntegerBounds | None:
        """The bounds of an argument, a tensor of integers or an integer; None if it is something else."""
        value = self.given.get(name)
        if isinstance(value, bool | int):
            return int(value), int(value)
        if isinstance(value, SSAValue) and isinstance(element_of(cast("SSAValue", value)), IntegerType):
            return self.ranges.of(cast("SSAValue", value))
        return None


def _both(rule: Callable[[IntegerBounds, IntegerBounds], IntegerBounds | None]) -> Callable[[_Call], Any]:
    def apply(call: _Call) -> IntegerBounds | None:
        x, y = call.bounds(), call.bounds("other")
        return None if x is None or y is None else rule(x, y)

    return apply


def _corners(function: Callable[[int, int], int]) -> Callable[[IntegerBounds, IntegerBounds], IntegerBounds]:
    def apply(x: IntegerBounds, y: IntegerBounds) -> IntegerBounds:
        found = [function(a, b) for a in x for b in y]
        return min(found), max(found)

    return apply


def _sum(call: _Call, sign: int) -> IntegerBounds | None:
    x, y, alpha = call.bounds(), call.bounds("other"), call.given.get("alpha", 1)
    if x is None or y is None or not isinstance(alpha, int):
        return None
    low, high = sorted((sign * alpha * y[0], sign * alpha * y[1]))
    return x[0] + low, x[1] + high


def _added(call: _Call) -> IntegerBounds | None:
    """Sums over elements: watched without signs, so that partial sums in any order stay inside too."""
    x = call.bounds()
    if x is None:
        return None
    before, after = prod(shape_of(call.op.operands[0])), prod(shape_of(call.op.results[0]))
    times = before // max(after, 1) if call.op.overload.startswith("sum") else before
    most = max(-x[0], x[1]) * max(times, 1)
    return -most if x[0] < 0 else 0, most


def _clamped(call: _Call) -> IntegerBounds | None:
    x = call.bounds()
    if x is None:
        return None
    least, most = call.given.get("min"), call.given.get("max")
    if any(n is not None and not isinstance(n, int) for n in (least, most)):
        return None
    low, high = (x[0] if least is None else max(x[0], least)), (x[1] if least is None else max(x[1], least))
    return (low, high) if most is None else (min(low, most), min(high, most))


def _rest(call: _Call) -> IntegerBounds | None:
    y = call.bounds("other")
    if y is None or y[0] <= 0 <= y[1]:
        return None
    return (0, y[1] - 1) if y[0] > 0 else (y[0] + 1, 0)


def _quotient(x: IntegerBounds, y: IntegerBounds) -> IntegerBounds | None:
    return None if y[0] <= 0 <= y[1] else _corners(lambda a, b: a // b)(x, y)


def _divided(call: _Call) -> IntegerBounds | None:
    if call.given.get("rounding_mode") is None:
        return None
    found = _both(_quotient)(call)
    return None if found is None else (found[0], found[1] + 1)  # rounding towards zero is at most one above


def _and(x: IntegerBounds, y: IntegerBounds) -> IntegerBounds | None:
    tops = [bounds[1] for bounds in (x, y) if bounds[0] >= 0]
    return (0, min(tops)) if tops else None


def _or(x: IntegerBounds, y: IntegerBounds) -> IntegerBounds | None:
    bits = max(max(-low - 1, high).bit_length() for low, high in (x, y))
    return (0 if min(x[0], y[0]) >= 0 else -(2**bits)), 2**bits - 1


def _shifted(call: _Call, *, left: bool) -> IntegerBounds | None:
    x, y = call.bounds(), call.bounds("other")
    if x is None or y is None or not 0 <= y[0] <= y[1] < 64:
        return None
    return _corners(lambda a, n: a << n if left else a >> n)(x, y)


def _converted(call: _Call) -> IntegerBounds | None:
    return call.bounds()


def _stepped(call: _Call) -> IntegerBounds | None:
    given = call.given
    start, end, step = given.get("start") or 0, given.get("end"), given.get("step") or 1
    if not all(isinstance(n, int) for n in (start, end, step)):
        return None
    steps = range(start, cast(int, end), step)
    return (min(steps[0], steps[-1]), max(steps[0], steps[-1])) if steps else (0, 0)


def _filled(call: _Call) -> IntegerBounds | None:
    number = call.given.get("fill_value")
    return (int(number), int(number)) if isinstance(number, int) else None


def _turned(x: IntegerBounds) -> IntegerBounds:
    return -x[1], -x[0]


def _one(rule: Callable[[IntegerBounds], IntegerBounds]) -> Callable[[_Call], IntegerBounds | None]:
    return lambda call: None if (x := call.bounds()) is None else rule(x)


_RULES: dict[str, Callable[[_Call], IntegerBounds | None]] = {
    "aten.add": lambda call: _sum(call, 1),
    "aten.sub": lambda call: _sum(call, -1),
    "aten.mul": _both(_corners(lambda a, b: a * b)),
    "aten.neg": _one(_turned),
    "aten.abs": _one(lambda x: (max(0, x[0], -x[1]), max(-x[0], x[1]))),
    "aten.sign": lambda _: (-1, 1),
    "aten.maximum": _both(lambda x, y: (max(x[0], y[0]), max(x[1], y[1]))),
    "aten.minimum": _both(lambda x, y: (min(x[0], y[0]), min(x[1], y[1]))),
    "aten.clamp": _clamped,
    "aten.remainder": _rest,
    "aten.div": _divided,
    "aten.sum": _added,
    "aten.cumsum": _added,
    "aten.bitwise_and": _both(_and),
    "aten.bitwise_or": _both(_or),
    "aten.bitwise_xor": _both(_or),
    "aten.bitwise_not": _one(lambda x: (-x[1] - 1, -x[0] - 1)),
    "aten.lshift": lambda call: _shifted(call, left=True),
    "aten.rshift": lambda call: _shifted(call, left=False),
    "aten.bitwise_left_shift": lambda call: _shifted(call, left=True),
    "aten.bitwise_right_shift": lambda call: _shifted(call, left=False),
    "aten._to_copy": _converted,
    "aten.arange": _stepped,
    "aten.full": _filled,
    "aten.full_like": _filled,
}


def operator_name(overload: str) -> str:
    """Return an operator without its overload: ``aten.add`` for ``add.Tensor``, ``aten.and`` for ``__and__.Tensor``."""
    return "aten." + overload.partition(".")[0].removeprefix("__").removesuffix("__")


def _values(given: object) -> list[SSAValue]:
    several = cast("list[object]", given) if isinstance(given, list) else [given]
    return [cast("SSAValue", value) for value in several if isinstance(value, SSAValue)]


# Names of operators in the tables above; the op table has all of them.
RANGED = frozenset([*_MOVES, *_COUNTS, *_FILLED, *_RULES, *_MULTIPLYING])

__all__ = ["RANGED", "AtenRanges", "operator_name"]
