"""Hardware functions on tensors, in `arith`, `math` and `linalg`, from the expressions of their records.

A function with one counterpart stays in the element type of its operands. One that takes several ops is computed in
single precision and rounded once, as the hardware rounds once.

Decision: docs/decisions/0039-numbers-and-functions-of-ktir.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, i64
from xdsl.dialects.linalg import attrs
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from spyre_mlir.ops.function_facts import Group, HardwareFunction
from spyre_mlir.ops.hardware_functions import FUNCTIONS
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Code, element_of, shape_of

Binary = Callable[[SSAValue, SSAValue], Operation]

# The ops of MLIR that expressions and reductions name.
_UNARY: Mapping[str, Callable[[SSAValue], Operation]] = {
    op.name: op
    for op in (
        *(arith.NegfOp, math.AbsFOp, math.ErfOp, math.ExpOp, math.FloorOp),
        *(math.LogOp, math.RsqrtOp, math.SqrtOp, math.TanhOp),
    )
}
_BINARY: Mapping[str, Binary] = {op.name: op for op in (arith.AddfOp, arith.MaximumfOp, arith.MinimumfOp)}


@dataclass(frozen=True)
class TensorArithmetic:
    """`ops.function_forms.Arithmetic` on tensors of a KTIR function."""

    code: Code

    def number(self, value: float, like: SSAValue) -> SSAValue:
        """One number everywhere."""
        return self.code.full(value, element_of(like), shape_of(like))

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a + b."""
        return self.code.add(arith.AddfOp(a, b))

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a - b."""
        return self.code.add(arith.SubfOp(a, b))

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a * b."""
        return self.code.add(arith.MulfOp(a, b))

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a / b."""
        return self.code.add(arith.DivfOp(a, b))

    def maximum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the larger."""
        return self.code.add(arith.MaximumfOp(a, b))

    def minimum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the smaller."""
        return self.code.add(arith.MinimumfOp(a, b))

    def unary(self, name: str, a: SSAValue) -> SSAValue:
        """Return a function of one number by MLIR's name."""
        return self.code.add(_UNARY[name](a))

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return 1 where the predicate holds, else 0."""
        element = element_of(a)
        one, zero = self.code.number(1.0, element), self.code.number(0.0, element)

        def body(values: Sequence[SSAValue]) -> Sequence[Operation]:
            found = arith.CmpfOp(values[0], values[1], predicate)
            return [found, arith.SelectOp(found.result, one, zero)]

        return _elementwise(self.code, [a, b], body, a)

    def choose(self, chosen: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the second where the first is not 0, else the third."""
        zero = self.code.number(0.0, element_of(chosen))

        def body(values: Sequence[SSAValue]) -> Sequence[Operation]:
            held = arith.CmpfOp(values[0], zero, "une")
            return [held, arith.SelectOp(held.result, values[1], values[2])]

        return _elementwise(self.code, [chosen, a, b], body, a)

    def above(self, value: SSAValue, limit: float, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return `a` where the value is above the limit, else `b`."""
        bound = self.code.number(limit, element_of(value))

        def body(values: Sequence[SSAValue]) -> Sequence[Operation]:
            held = arith.CmpfOp(values[0], bound, "ogt")
            return [held, arith.SelectOp(held.result, values[1], values[2])]

        return _elementwise(self.code, [value, a, b], body, a)


def has_form(name: str) -> bool:
    """Return whether KTIR can express an elementwise function; its ops here are those of floats."""
    function = FUNCTIONS.get(name)
    if function is None or function.form is None:
        return False
    return function.group is not Group.CONVERSION and function.formats != "INT32"


def folds(name: str) -> bool:
    """Return whether KTIR can reduce by a function."""
    function = FUNCTIONS.get(name)
    return function is not None and _fold_of(function) is not None


def _fold_of(function: HardwareFunction) -> Binary | None:
    plain = not function.absolute and function.factor is None and function.combine is not None
    return _BINARY.get(str(function.combine)) if plain else None


def known_functions() -> list[str]:
    """Return the names of the functions that KTIR can express, sorted."""
    return sorted(name for name in FUNCTIONS if has_form(name) or folds(name))


def apply(code: Code, name: str, args: Sequence[SSAValue], constants: Mapping[str, float]) -> SSAValue:
    """Apply an elementwise function."""
    function = FUNCTIONS[name]
    assert function.form is not None
    arithmetic = TensorArithmetic(code)
    if not function.composed:
        return cast(SSAValue, function.form(arithmetic, *args, **constants))
    element = element_of(args[0])
    wide = function.form(arithmetic, *(code.widened(a) for a in args), **constants)
    return code.narrowed(cast(SSAValue, wide), element)


def _elementwise(
    code: Code, args: Sequence[SSAValue], body: Callable[[Sequence[SSAValue]], Sequence[Operation]], like: SSAValue
) -> SSAValue:
    """A `linalg.generic` over elements: for functions whose truth values no op on tensors may hold."""
    element, shape = element_of(like), shape_of(like)
    block = Block(arg_types=[*(element_of(a) for a in args), element])
    ops = body(block.args[:-1])
    block.add_ops([*ops, linalg.YieldOp(ops[-1].results[0])])
    same = AffineMapAttr(AffineMap.identity(len(shape)))
    parallel = attrs.IteratorTypeAttr(attrs.IteratorType.PARALLEL)
    generic = linalg.GenericOp(
        list(args),
        [code.empty(element, shape)],
        Region(block),
        [same] * (len(args) + 1),
        [parallel] * len(shape),
        [like.type],
    )
    return code.add(generic)


def combined(code: Code, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """Combine two partial results of a reduction."""
    fold_op = _fold_of(FUNCTIONS[name])
    assert fold_op is not None
    return code.add(fold_op(a, b))


def adds(name: str) -> bool:
    """Return whether a reduction adds, so that partial results need a wider type."""
    return _fold_of(FUNCTIONS[name]) is arith.AddfOp


def neutral(name: str) -> float:
    """Return the neutral element of a reduction."""
    return FUNCTIONS[name].neutral


def fold(code: Code, name: str, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Return `linalg.reduce` of a tensor over dimensions."""
    fold_op, element = _fold_of(FUNCTIONS[name]), element_of(value)
    assert fold_op is not None
    kept = [e for d, e in enumerate(shape_of(value)) if d not in dims]
    start = code.filled(code.number(neutral(name), element), element, kept)
    block = Block(arg_types=[element, element])
    both = fold_op(block.args[0], block.args[1])
    block.add_ops([both, linalg.YieldOp(both.results[0])])
    return code.add(linalg.ReduceOp(value, start, DenseArrayBase.from_list(i64, list(dims)), Region(block)))


__all__ = ["TensorArithmetic", "adds", "apply", "combined", "fold", "folds", "has_form", "known_functions", "neutral"]
