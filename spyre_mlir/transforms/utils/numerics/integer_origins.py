"""Floats of a function that start from integers: positions, angles, counts. They are float32 until they meet data.

DL16 has ten significant bits, so an angle of 1,000 radians is known to half a radian there. A nest that reads nothing
but numbers made from integers, constants and weights therefore computes in FP32, whatever float type the model gives
them. Data among the operands, a product of matrices, or a choice of rows of a weight ends that.

Decision: docs/decisions/0096-what-starts-from-integers-is-float32.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import inf, prod

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.spyre import host, loop
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.dialects.tensors import element_of, integer_bits, shape_of
from spyre_mlir.hw.formats import DL16_LARGEST
from spyre_mlir.ops.native import pointwise, reductions
from spyre_mlir.transforms.utils.numerics.integer_ranges import (
    BOUNDS,
    NARROW,
    FloatBounds,
    Ranges,
    constant_bounds,
    inside,
    stated_bounds,
)

# Integers of so few bits are data in a short form: pixels, quantised weights.
_DATA_BITS = 8


class FloatOrigin(IntEnum):
    """Origin of a float tensor's numbers; of several operands the largest counts."""

    WEIGHTS = 0
    SHORT = 1  # truth values and integers of eight bits: exact in DL16, and so are their sums up to 1,024
    INTEGERS = 2
    DATA = 3


_UNKNOWN: FloatBounds = (-inf, inf)
Known = tuple[FloatOrigin, FloatBounds]


class Origins:
    """The origins of the floats of one function.

    Attributes:
        wide: ops whose result starts from integers, or goes into such a result: they compute in FP32.
    """

    def __init__(
        self, function: func.FuncOp, prepared: Mapping[SSAValue, bool], given: Mapping[SSAValue, Known] | None = None
    ) -> None:
        """Finds them.

        Args:
            function: at the loop level.
            prepared: of each argument, whether the host lays it out ahead of time.
            given: what the caller of a region knows of arguments that it computes.
        """
        self.wide: set[Operation] = set()
        self._ranges = Ranges(checks=False)  # the conversion refuses, op by op
        self._origins: dict[SSAValue, FloatOrigin] = {}
        self._bounds: dict[SSAValue, FloatBounds] = {}
        for argument in function.body.block.args:
            noted = stated_bounds(argument)
            origin = FloatOrigin.WEIGHTS if prepared[argument] else FloatOrigin.DATA
            self._origins[argument] = origin if noted is None else FloatOrigin.INTEGERS
            self._bounds[argument] = noted or _UNKNOWN
        for argument, (origin, bounds) in (given or {}).items():
            self._origins[argument], self._bounds[argument] = origin, bounds
        for op in function.body.block.ops:
            self._origins.update(dict.fromkeys(op.results, self._origin(op)))
            self._bounds.update(dict.fromkeys(op.results, self._bound(op)))
        self._widen(list(function.body.block.ops))

    def known(self, value: SSAValue) -> Known:
        """Return the origin and the bounds of a value."""
        return self._origins[value], self._bounds[value]

    def rounds(self, op: loop.NestOp) -> bool:
        """Return whether a nest loses digits by reading operands in DL16: numbers from integers that may be large."""
        floats = [v for v in op.inputs if _is_float(v) and self._origins[v] is FloatOrigin.INTEGERS]
        return not all(inside(self._bounds[v], NARROW) for v in floats)

    def _origin(self, op: Operation) -> FloatOrigin:
        read = [v for v in op.operands if _is_float(v)]
        long = any(integer_bits(element_of(v)) > _DATA_BITS for v in op.operands)
        found = max((self._origins[v] for v in read), default=FloatOrigin.WEIGHTS)
        match op:
            case loop.NestOp() if is_product(op):
                return FloatOrigin.DATA
            case loop.NestOp():
                if not any(map(_is_float, op.inputs)):  # a conversion; elsewhere truth values only choose
                    found = max(found, FloatOrigin.INTEGERS if long else FloatOrigin.SHORT)
                counts = found is FloatOrigin.SHORT and _is_sum(op) and not inside(self._bound(op), NARROW)
                return FloatOrigin.INTEGERS if counts else found
            case loop.LoopGatherOp() | host.LoopHostOp() | ControlOp() if read:
                return FloatOrigin.DATA if found is FloatOrigin.WEIGHTS else found  # rows of a weight are an embedding
            case loop.LoopConstantOp() if not inside(self._bound(op), (-DL16_LARGEST, DL16_LARGEST)):
                return FloatOrigin.DATA  # stands for infinity in a mask, which DL16 has in a form of its own
            case func.CallOp():
                return FloatOrigin.DATA  # the function knows better, and computes in the format it should
            case host.LoopHostOp() | ControlOp():
                return FloatOrigin.INTEGERS if long else FloatOrigin.SHORT
            case _:
                return FloatOrigin.WEIGHTS

    def _widen(self, ops: Sequence[Operation]) -> None:
        """Marks what is FP32, from the last op to the first: what such a result is made of is FP32 too."""
        wanted: set[SSAValue] = set()
        for op in reversed(ops):
            if isinstance(op, loop.NestOp | loop.LoopGatherOp | loop.EmptyOp) and self._is_wide(op, wanted):
                self.wide.add(op)
                wanted |= {v for v in op.operands if _is_float(v)}

    def _is_wide(self, op: loop.NestOp | loop.LoopGatherOp | loop.EmptyOp, wanted: set[SSAValue]) -> bool:
        users = [u.operation for u in op.result.uses]
        for user in users:
            if isinstance(user, loop.NestOp) and user.dest is op.result:
                return user in self.wide  # all parts of a tensor have one format
        if op.result in wanted:
            return True
        return self._origins[op.result] is FloatOrigin.INTEGERS and any(map(_is_float, (op.result, *op.operands)))

    def _bound(self, op: Operation) -> FloatBounds:
        """Bounds of the floats that an op makes, as far as constants and types tell."""
        match op:
            case loop.LoopConstantOp():
                return constant_bounds(op.value, shape_of(op.result))
            case loop.EmptyOp():
                return 0.0, 0.0
            case loop.NestOp() if not is_product(op):
                low, high = self._of_body(op)
                if _is_sum(op):
                    times = prod(op.space.extents[name] for name in op.reduced)
                    low, high = low * times, high * times
                filled = (low, high) if op.dest is None else self._bounds[op.dest]
                return min(low, filled[0]), max(high, filled[1])
            case loop.LoopGatherOp():
                return self._bounds[op.table]
            case _:
                return _UNKNOWN

    def _of_body(self, op: loop.NestOp) -> FloatBounds:
        operands = [self._bounds[v] if _is_float(v) else self._ranges.of(v) for v in op.inputs]
        entry = body_function(op.body.block)
        if entry is None:
            return operands[0]
        rule = BOUNDS.get(entry.name)
        return _UNKNOWN if rule is None else rule(operands)


def is_product(op: loop.NestOp) -> bool:
    """Return whether a nest is a contraction, which the matrix unit computes."""
    return op.combine is not None and body_function(op.body.block) is pointwise.mul


def _is_sum(op: loop.NestOp) -> bool:
    return op.combine is not None and loop.combiner(op.combine.data) is reductions.sum


def _is_float(value: SSAValue) -> bool:
    return not isinstance(element_of(value), IntegerType)


__all__ = ["FloatOrigin", "Known", "Origins", "is_product"]
