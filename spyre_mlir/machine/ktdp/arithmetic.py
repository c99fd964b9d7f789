"""The arith and math ops of KTIR on whole arrays, in the element type of the program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.ktdp.values import Array, Data, dtype_of, shape_of

OpRule = Callable[..., Any]
Unary = Callable[[Array], Any]
ArrayBinary = Callable[[Array, Array], Any]


def _unsigned(values: Array) -> Array:
    return values.astype(np.uint8) if values.dtype == np.bool_ else values.view(f"uint{8 * values.itemsize}")


def _on_unsigned(rule: ArrayBinary) -> ArrayBinary:
    return lambda a, b: rule(_unsigned(a), _unsigned(b))


def _truncated(a: Array, b: Array) -> Array:
    """Quotient of whole numbers, towards zero."""
    quotient, remainder = np.divmod(a, b)
    return quotient + ((remainder != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def _half_up(values: Array) -> Array:
    """Round half away from zero."""
    return np.copysign(np.floor(np.abs(values) + values.dtype.type(0.5)), values)


def _signed(values: Array) -> Array:
    """A truth value as a number is -1."""
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def _same(values: Array) -> Array:
    return values


def _fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c; the product of two singles is exact in double, so that only the sum rounds before the end."""
    return a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)


_ERF = np.frompyfunc(math.erf, 1, 1)

_UNARY: Mapping[str, Unary] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.ceil": np.ceil,
    "math.cos": np.cos,
    "math.erf": lambda a: _ERF(a.astype(np.float64)),
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.floor": np.floor,
    "math.log": np.log,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.round": _half_up,
    "math.roundeven": np.rint,
    "math.rsqrt": lambda a: 1 / np.sqrt(a.astype(np.float64)),
    "math.sin": np.sin,
    "math.sqrt": np.sqrt,
    "math.tan": np.tan,
    "math.tanh": np.tanh,
    "math.trunc": np.trunc,
    "linalg.exp": np.exp,
    "linalg.log": np.log,
    "linalg.sqrt": np.sqrt,
    "linalg.copy": _same,
    "arith.extf": _same,
    "arith.truncf": _same,
    "arith.sitofp": _signed,
    "arith.uitofp": _unsigned,
    "arith.fptosi": np.trunc,
    "arith.fptoui": lambda a: np.trunc(a).astype(np.uint64),
    "arith.index_cast": _signed,
    "arith.index_castui": _unsigned,
    "arith.extsi": _signed,
    "arith.extui": _unsigned,
    "arith.trunci": _same,
}

_BINARY: Mapping[str, ArrayBinary] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "math.atan2": np.arctan2,
    "math.copysign": np.copysign,
    "math.powf": np.power,
    "linalg.add": np.add,
    "linalg.sub": np.subtract,
    "linalg.mul": np.multiply,
    "linalg.max": np.maximum,
    "linalg.min": np.minimum,
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minui": _on_unsigned(np.minimum),
    "arith.maxui": _on_unsigned(np.maximum),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": _on_unsigned(np.right_shift),
}

_DIVISIONS: Mapping[str, ArrayBinary] = {
    "arith.divsi": _truncated,
    "arith.divui": _on_unsigned(np.floor_divide),
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": lambda a, b: -np.floor_divide(-a, b),
    "arith.ceildivui": _on_unsigned(lambda a, b: a // b + (a % b != 0)),
    "arith.remsi": lambda a, b: a - _truncated(a, b) * b,
    "arith.remui": _on_unsigned(np.remainder),
}

_TERNARY: Mapping[str, Callable[[Array, Array, Array], Any]] = {
    "math.fma": _fused,
    "arith.select": np.where,
    "linalg.select": np.where,
}

ELEMENTWISE: Mapping[str, OpRule] = {**_UNARY, **_BINARY, **_DIVISIONS, **_TERNARY}

_COMPARE: Mapping[str, ArrayBinary] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def elementwise(op: Operation, inputs: list[Data]) -> Data:
    """Return the result of an elementwise op.

    Raises:
        MachineFault: ``division-by-zero`` of whole numbers.
        UnsupportedError: the op has no rule.
    """
    arrays, kind = [one.values for one in inputs], dtype_of(op.results[0].type)
    if op.name in _DIVISIONS:
        divisor = inputs[1].values
        if not divisor.all():
            raise fault(FaultKind.DIVISION_BY_ZERO, "a whole number is divided by zero", op)
    with np.errstate(all="ignore"):  # infinities and NaN are values of the program
        result = np.asarray(_rule(op)(*arrays))
        if op.name == "arith.trunci" and kind == np.bool_:
            result = result & 1
        values = np.asarray(result.astype(kind, copy=False))
    return Data(np.array(values) if values is arrays[0] else values, _defined(op, inputs))


def _rule(op: Operation) -> OpRule:
    if isinstance(op, arith.CmpiOp):
        return _comparison(arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], floating=False)
    if isinstance(op, arith.CmpfOp):
        return _comparison(arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], floating=True)
    if isinstance(op, arith.BitcastOp):
        kind = dtype_of(op.results[0].type)
        return _viewed(kind)
    found = ELEMENTWISE.get(op.name)
    if found is None:
        raise UnsupportedError(
            f"{op.name} does not run in KTIR programs here", hint="write it with ops of arith or math"
        )
    return found


def _viewed(kind: np.dtype[Any]) -> Unary:
    return lambda a: a.view(kind)


def _comparison(name: str, *, floating: bool) -> ArrayBinary:
    if name in ("true", "false"):
        return lambda a, b: np.full(np.broadcast_shapes(a.shape, b.shape), name == "true")
    if not floating:
        rule = _COMPARE[name[-2:]]
        return _on_unsigned(rule) if name.startswith("u") else rule
    if name in ("ord", "uno"):
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == (name == "uno")
    rule, unordered = _COMPARE[name[1:]], name.startswith("u")

    def compare(a: Array, b: Array) -> Array:
        either = np.isnan(a) | np.isnan(b)
        return (rule(a, b) | either) if unordered else (rule(a, b) & ~either)

    return compare


def _defined(op: Operation, inputs: list[Data]) -> Any:
    """An element has a value when all it was made from has; a choice looks only at what it picks."""
    if all(one.defined is None for one in inputs):
        return None
    masks = [np.ones((), np.bool_) if one.defined is None else one.defined for one in inputs]
    if op.name in ("arith.select", "linalg.select"):
        found = masks[0] & np.where(inputs[0].values, masks[1], masks[2])
    else:
        found = masks[0]
        for other in masks[1:]:
            found = found & other
    return np.broadcast_to(found, np.broadcast_shapes(*(one.values.shape for one in inputs)))


def constant(op: arith.ConstantOp) -> Data:
    """Return the value of a constant, which is part of the program and needs no scratchpad bytes.

    Raises:
        UnsupportedError: it is neither a number nor a dense tensor.
    """
    kind, attribute = dtype_of(op.result.type), op.value
    match attribute:
        case IntegerAttr() | FloatAttr():
            return Data(np.asarray(attribute.value.data).astype(kind))
        case DenseIntOrFPElementsAttr() if attribute.is_splat():
            with np.errstate(over="ignore"):
                splat = np.asarray(next(iter(attribute.iter_values()))).astype(kind)
            return Data(np.broadcast_to(splat, shape_of(op.result.type)), charged=False)
        case DenseIntOrFPElementsAttr():
            values = np.asarray(list(attribute.iter_values())).astype(kind)
            return Data(values.reshape(shape_of(op.result.type)), charged=False)
        case _:
            raise UnsupportedError(f"a constant {attribute} does not run here yet")
