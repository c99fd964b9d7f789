"""Canonicalisation of the loop level: nests that copy a tensor to itself, and nests over known numbers.

A nest whose result is not rounded (`wide`) may stand for others that are; what drops a nest looks at both.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32, f64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from spyre_mlir.dialects.ir.canonicalization import Patterns
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopConstantOp, LoopGatherOp, NestOp, YieldOp
from spyre_mlir.dialects.tensors import element_of, shape_of

# In float64, sums, differences and products of float32 round to float32 as if they had been computed there.
_EXACT: dict[type[Operation], Callable[[float, float], float]] = {
    arith.AddfOp: operator.add,
    arith.SubfOp: operator.sub,
    arith.MulfOp: operator.mul,
}


def _as_float32(number: float) -> float | None:
    """Return a number as float32 rounds it; None if it is beyond its largest."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return None


def _is_rounded(value: SSAValue) -> bool:
    """Return whether a tensor has no digits that a nest would round away."""
    match value.owner:
        case Block() | EmptyOp():
            return True
        case NestOp() as nest:
            return nest.wide is None and (nest.dest is None or _is_rounded(nest.dest))
        case LoopGatherOp() as gather:
            return _is_rounded(gather.table)
        case LoopConstantOp(value=FloatAttr() as number):
            return element_of(value) != f32 or _as_float32(number.value.data) == number.value.data
        case _:
            return False


def writes_all(op: NestOp) -> bool:
    """Return whether a nest writes every element of its result, each at one point."""
    extents, used = op.space.extents, list[str]()
    for expr, extent in zip(op.output_map.data, shape_of(op.result), strict=True):
        inner = 1
        for name, step in sorted(expr.terms, key=lambda term: term[1]):
            if step != inner:
                return False
            inner *= extents[name]
            used.append(name)
        if expr.const or inner != extent:
            return False
    return len(used) == len(set(used)) and all(e == 1 or name in used for name, e in extents.items())


@dataclass
class DropIdentityNest(RewritePattern):
    """Replaces a nest that copies every element to the place it has, in the same type, by its input."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NestOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one nest."""
        if op.combine is not None or op.dest is not None or not isinstance(op.body.block.first_op, YieldOp):
            return
        (source,) = op.inputs
        in_place = op.input_maps[0] == op.output_map and source.type == op.result.type
        if in_place and (op.wide is not None or _is_rounded(source)):
            rewriter.replace(op, (), [source])


@dataclass
class DropOverwrittenDest(RewritePattern):
    """Drops the destination of a nest that writes every element: nothing of it remains."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NestOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one nest."""
        if op.dest is None or op.combine is not None or not writes_all(op):
            return
        body = op.detach_region(op.body)
        made = NestOp(op.space, op.inputs, op.maps.data, op.result.type, body)
        made.wide = op.wide
        made.attributes.update(op.attributes)
        made.location = op.location
        rewriter.replace(op, made)


@dataclass
class FoldConstantNest(RewritePattern):
    """Replaces a nest that copies, adds, subtracts or multiplies known numbers by the number it gives everywhere.

    Only float32 numbers that are no NaN, and results that float32 has too: those eager has to the last bit.
    """

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NestOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one nest."""
        if op.combine is not None or op.dest is not None or not op.inputs or not writes_all(op):
            return
        numbers = [_number(value) for value in op.inputs]
        known = [n for n in numbers if n is not None]
        result = _folded(op, known) if len(known) == len(numbers) else None
        if result is not None:
            made = LoopConstantOp(FloatAttr(result, f64), op.result.type)
            made.location = op.location
            rewriter.replace(op, made)


def _number(value: SSAValue) -> float | None:
    """Return the number that a float32 tensor holds everywhere, if it is known and float32 has it."""
    match value.owner:
        case LoopConstantOp(value=FloatAttr() as number) if element_of(value) == f32 and _is_rounded(value):
            return number.value.data
        case _:
            return None


def _folded(op: NestOp, numbers: Sequence[float]) -> float | None:
    """Return what the body gives for numbers; None if that is not exact, or not known."""
    first = op.body.block.first_op
    if element_of(op.result) != f32 or first is None:
        return None
    if isinstance(first, YieldOp):
        return numbers[0]
    compute = _EXACT.get(type(first))
    if compute is None or op.wide is not None:
        return None
    result = _as_float32(compute(numbers[0], numbers[1]))
    return None if result is None or isnan(result) else result


PATTERNS: Patterns = {NestOp: (DropIdentityNest(), DropOverwrittenDest(), FoldConstantNest())}
