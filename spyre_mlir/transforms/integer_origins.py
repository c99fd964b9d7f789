"""Which floats of a function start from integers: positions, angles, counts. They are float32 until they meet data.

DL16 has ten significant bits, so an angle of 1,000 radians is known to half a radian there. A nest that reads nothing
but numbers made from integers, constants and weights therefore computes in FP32, whatever float type the model gives
them. Data among the operands, a product of matrices, or a choice of rows of a weight ends that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from math import inf, prod

from xdsl.dialects import func
from xdsl.dialects.builtin import FloatAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from spyre_mlir.dialects.spyre import host, loop
from spyre_mlir.dialects.spyre.scalars import body_function, body_numbers
from spyre_mlir.dialects.tensors import element_of, integer_bits
from spyre_mlir.ops import pointwise, reduction
from spyre_mlir.transforms.integers import NARROW, Ranges, stated_bounds

# Integers of so few bits are data in a short form: pixels, quantised weights.
_DATA_BITS = 8


class Origin(IntEnum):
    """Where the numbers of a float tensor come from; of several operands the largest counts."""

    WEIGHTS = 0
    SHORT = 1  # truth values and integers of eight bits: exact in DL16, but their sums need not be
    INTEGERS = 2
    DATA = 3


# The largest magnitude of a result, from those of the operands.
_MAGNITUDES: Mapping[str, Callable[[Sequence[float]], float]] = {
    pointwise.add.name: lambda x: x[0] + x[1],
    pointwise.sub.name: lambda x: x[0] + x[1],
    pointwise.mul.name: lambda x: x[0] * x[1] if min(x) else 0.0,
    pointwise.maximum.name: max,
    pointwise.minimum.name: max,
    pointwise.where.name: lambda x: max(x[1:]),
    pointwise.neg.name: max,
    pointwise.abs.name: max,
    pointwise.relu.name: max,
    pointwise.floor.name: lambda x: x[0] + 1,
    pointwise.sigmoid.name: lambda _: 1.0,
}


class Origins:
    """The origins of the floats of one function.

    Attributes:
        wide: ops whose result starts from integers, or goes into such a result: they compute in FP32.
    """

    def __init__(self, function: func.FuncOp, prepared: Mapping[SSAValue, bool]) -> None:
        """Finds them; `prepared` says of each argument whether the host lays it out ahead of time."""
        self.wide: set[Operation] = set()
        self._ranges = Ranges()
        self._origins: dict[SSAValue, Origin] = {}
        self._magnitudes: dict[SSAValue, float] = {}
        for argument in function.body.block.args:
            noted = stated_bounds(argument)
            origin = Origin.WEIGHTS if prepared[argument] else Origin.DATA
            self._origins[argument] = origin if noted is None else Origin.INTEGERS
            self._magnitudes[argument] = inf if noted is None else max(map(abs, noted))
        for op in function.body.block.ops:
            self._origins.update(dict.fromkeys(op.results, self._origin(op)))
            self._magnitudes.update(dict.fromkeys(op.results, self._magnitude(op)))
        self._widen(list(function.body.block.ops))

    def rounds(self, op: loop.NestOp) -> bool:
        """Whether a nest loses digits if it reads its operands in DL16: numbers from integers that may be large."""
        floats = [v for v in op.inputs if _is_float(v) and self._origins[v] is Origin.INTEGERS]
        return any(self._magnitudes[v] > NARROW[1] for v in floats)

    def _origin(self, op: Operation) -> Origin:
        read = [v for v in op.operands if _is_float(v)]
        long = any(integer_bits(element_of(v)) > _DATA_BITS for v in op.operands)
        found = max((self._origins[v] for v in read), default=Origin.WEIGHTS)
        match op:
            case loop.NestOp() if is_product(op):
                return Origin.DATA
            case loop.NestOp():
                if not any(map(_is_float, op.inputs)):  # a conversion; elsewhere truth values only choose
                    found = max(found, Origin.INTEGERS if long else Origin.SHORT)
                return Origin.INTEGERS if found is Origin.SHORT and _is_sum(op) else found
            case loop.GatherOp():
                return Origin.DATA if found is Origin.WEIGHTS else found  # rows of a weight are an embedding
            case host.LoopHostOp():
                return max(found, Origin.INTEGERS) if long else found
            case _:
                return Origin.WEIGHTS

    def _widen(self, ops: Sequence[Operation]) -> None:
        """Marks what is FP32, from the last op to the first: what such a result is made of is FP32 too."""
        wanted: set[SSAValue] = set()
        for op in reversed(ops):
            if isinstance(op, loop.NestOp | loop.GatherOp | loop.EmptyOp) and self._is_wide(op, wanted):
                self.wide.add(op)
                wanted |= {v for v in op.operands if _is_float(v)}

    def _is_wide(self, op: loop.NestOp | loop.GatherOp | loop.EmptyOp, wanted: set[SSAValue]) -> bool:
        users = [u.operation for u in op.result.uses]
        for user in users:
            if isinstance(user, loop.NestOp) and user.dest is op.result:
                return user in self.wide  # all parts of a tensor have one format
        if op.result in wanted:
            return True
        return self._origins[op.result] is Origin.INTEGERS and any(map(_is_float, (op.result, *op.operands)))

    def _magnitude(self, op: Operation) -> float:
        """The largest magnitude in the result of an op, as far as constants and types tell."""
        match op:
            case loop.ConstantOp():
                return _largest(op.value)
            case loop.EmptyOp():
                return 0.0
            case loop.NestOp() if not is_product(op):
                found = self._of_body(op)
                if op.combine is not None and loop.combiner(op.combine.data) is reduction.sum:
                    found *= prod(op.space.extents[name] for name in op.reduced)
                return found if op.dest is None else max(found, self._magnitudes[op.dest])
            case loop.GatherOp():
                return self._magnitudes[op.table]
            case _:
                return inf

    def _of_body(self, op: loop.NestOp) -> float:
        operands = [self._magnitudes[v] if _is_float(v) else max(map(abs, self._ranges.of(v))) for v in op.inputs]
        entry = body_function(op.body.block)
        if entry is None:
            return max(operands)
        if entry is pointwise.clamp:
            return max((abs(n) for n in body_numbers(op.body.block).values()), default=inf)
        return _MAGNITUDES.get(entry.name, lambda _: inf)(operands)


def is_product(op: loop.NestOp) -> bool:
    """Whether a nest sums products, which is what the matrix unit does."""
    return op.combine is not None and body_function(op.body.block) is pointwise.mul


def _is_sum(op: loop.NestOp) -> bool:
    return op.combine is not None and loop.combiner(op.combine.data) is reduction.sum


def _is_float(value: SSAValue) -> bool:
    return not isinstance(element_of(value), IntegerType)


def _largest(value: Attribute) -> float:
    return abs(value.value.data) if isinstance(value, FloatAttr) else inf


__all__ = ["Origin", "Origins", "is_product"]
