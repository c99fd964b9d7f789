"""What every hardware function is in `arith`, `math` and `linalg`, on tensors.

A function with one counterpart stays in the element type of its operands. One that takes several ops is computed in
single precision and rounded once, as the hardware rounds once.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, i64
from xdsl.dialects.linalg import attrs
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Code, element_of, shape_of

Function = Callable[[Code, Sequence[SSAValue]], SSAValue]

_BINARY: dict[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "realdiv": arith.DivfOp,
    "maximum": arith.MaximumfOp,
    "minimum": arith.MinimumfOp,
}

_UNARY: dict[str, Callable[[SSAValue], Operation]] = {
    "neg": arith.NegfOp,
    "abs": math.AbsFOp,
    "exp": math.ExpOp,
    "log": math.LogOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "tanh": math.TanhOp,
    "floor": math.FloorOp,
}

_COMPARE = {
    "equal": "oeq",
    "notequal": "une",
    "greaterequal": "oge",
    "lesserequal": "ole",
    "greaterthan": "ogt",
    "lesserthan": "olt",
}

# How partial results of a reduction combine, and what changes nothing.
FOLDS: Mapping[str, tuple[Callable[[SSAValue, SSAValue], Operation], float]] = {
    "sum": (arith.AddfOp, 0.0),
    "max": (arith.MaximumfOp, -numbers.inf),
    "min": (arith.MinimumfOp, numbers.inf),
}


def _identity(code: Code, args: Sequence[SSAValue]) -> SSAValue:
    return args[0]


def _binary(make: Callable[[SSAValue, SSAValue], Operation]) -> Function:
    return lambda code, args: code.add(make(args[0], args[1]))


def _unary(make: Callable[[SSAValue], Operation]) -> Function:
    return lambda code, args: code.add(make(args[0]))


def _full(code: Code, value: float, like: SSAValue) -> SSAValue:
    return code.full(value, element_of(like), shape_of(like))


def _relu(code: Code, args: Sequence[SSAValue]) -> SSAValue:
    return code.add(arith.MaximumfOp(args[0], _full(code, 0.0, args[0])))


def _reciprocal(code: Code, args: Sequence[SSAValue]) -> SSAValue:
    return code.add(arith.DivfOp(_full(code, 1.0, args[0]), args[0]))


def _wide(body: Function) -> Function:
    """A function computed in single precision, rounded at its end."""

    def run(code: Code, args: Sequence[SSAValue]) -> SSAValue:
        element = element_of(args[0])
        return code.narrowed(body(code, [code.widened(a) for a in args]), element)

    return run


def _sigmoid(code: Code, args: Sequence[SSAValue]) -> SSAValue:
    one = _full(code, 1.0, args[0])
    e = code.add(math.ExpOp(code.add(arith.NegfOp(args[0]))))
    return code.add(arith.DivfOp(one, code.add(arith.AddfOp(one, e))))


def _silu(code: Code, args: Sequence[SSAValue]) -> SSAValue:
    return code.add(arith.MulfOp(args[0], _sigmoid(code, args)))


def _mish(code: Code, args: Sequence[SSAValue]) -> SSAValue:
    """x tanh(log(1 + e^x)); the logarithm is max(x, 0) + log(1 + e^-|x|), which does not overflow."""
    x = args[0]
    falling = code.add(math.ExpOp(code.add(arith.NegfOp(code.add(math.AbsFOp(x))))))
    rest = code.add(math.LogOp(code.add(arith.AddfOp(_full(code, 1.0, x), falling))))
    softplus = code.add(arith.AddfOp(code.add(arith.MaximumfOp(x, _full(code, 0.0, x))), rest))
    return code.add(arith.MulfOp(x, code.add(math.TanhOp(softplus))))


def _gelu(code: Code, args: Sequence[SSAValue]) -> SSAValue:
    x = args[0]
    scaled = code.add(arith.MulfOp(x, _full(code, 1.0 / numbers.sqrt(2.0), x)))
    upper = code.add(arith.AddfOp(_full(code, 1.0, x), code.add(math.ErfOp(scaled))))
    return code.add(arith.MulfOp(code.add(arith.MulfOp(x, _full(code, 0.5, x))), upper))


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


def _compare(predicate: str) -> Function:
    def run(code: Code, args: Sequence[SSAValue]) -> SSAValue:
        element = element_of(args[0])
        one, zero = code.number(1.0, element), code.number(0.0, element)

        def body(values: Sequence[SSAValue]) -> Sequence[Operation]:
            found = arith.CmpfOp(values[0], values[1], predicate)
            return [found, arith.SelectOp(found.result, one, zero)]

        return _elementwise(code, args, body, args[0])

    return run


def _where(code: Code, args: Sequence[SSAValue]) -> SSAValue:
    zero = code.number(0.0, element_of(args[0]))

    def body(values: Sequence[SSAValue]) -> Sequence[Operation]:
        chosen = arith.CmpfOp(values[0], zero, "une")
        return [chosen, arith.SelectOp(chosen.result, values[1], values[2])]

    return _elementwise(code, args, body, args[1])


def _softplus(constants: Mapping[str, float]) -> Function:
    """log(1 + e^(beta x)) / beta, without overflow; x itself where beta x is above the threshold."""
    beta, threshold = constants["softplusBeta"], constants["softplusThresh"]

    def run(code: Code, args: Sequence[SSAValue]) -> SSAValue:
        x = args[0]
        scaled = code.add(arith.MulfOp(x, _full(code, beta, x)))
        falling = code.add(math.ExpOp(code.add(arith.NegfOp(code.add(math.AbsFOp(scaled))))))
        rest = code.add(math.LogOp(code.add(arith.AddfOp(_full(code, 1.0, x), falling))))
        positive = code.add(arith.MaximumfOp(scaled, _full(code, 0.0, x)))
        soft = code.add(arith.DivfOp(code.add(arith.AddfOp(positive, rest)), _full(code, beta, x)))
        limit = code.number(threshold, element_of(x))

        def body(values: Sequence[SSAValue]) -> Sequence[Operation]:
            above = arith.CmpfOp(values[0], limit, "ogt")
            return [above, arith.SelectOp(above.result, values[1], values[2])]

        return _elementwise(code, [scaled, x, soft], body, x)

    return _wide(run)


# Functions that a kernel gives constants, by what they make of them.
WITH_CONSTANTS: Mapping[str, Callable[[Mapping[str, float]], Function]] = {"softplus": _softplus}

FUNCTIONS: Mapping[str, Function] = {
    "identity": _identity,
    **{name: _binary(make) for name, make in _BINARY.items()},
    **{name: _unary(make) for name, make in _UNARY.items()},
    **{name: _compare(predicate) for name, predicate in _COMPARE.items()},
    "where3": _where,
    "relufwd": _relu,
    "reciprocal": _reciprocal,
    "sigmoid": _wide(_sigmoid),
    "silu": _wide(_silu),
    "gelufwd": _wide(_gelu),
    "mish": _wide(_mish),
}


def fold(code: Code, function: str, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """`linalg.reduce` of a tensor over dimensions."""
    combine, neutral = FOLDS[function]
    element = element_of(value)
    kept = [e for d, e in enumerate(shape_of(value)) if d not in dims]
    start = code.filled(code.number(neutral, element), element, kept)
    block = Block(arg_types=[element, element])
    both = combine(block.args[0], block.args[1])
    block.add_ops([both, linalg.YieldOp(both.results[0])])
    return code.add(linalg.ReduceOp(value, start, DenseArrayBase.from_list(i64, list(dims)), Region(block)))


__all__ = ["FOLDS", "FUNCTIONS", "WITH_CONSTANTS", "fold"]
