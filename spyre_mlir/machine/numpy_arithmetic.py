"""Expressions of hardware functions on numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spyre_mlir.machine.memory.exact import Floats

_UNARY: Mapping[str, np.ufunc] = {
    "arith.negf": np.negative,
    "math.absf": np.absolute,
    "math.exp": np.exp,
    "math.log": np.log,
    "math.tanh": np.tanh,
    "math.sqrt": np.sqrt,
    "math.floor": np.floor,
    "math.trunc": np.trunc,
}
_COMPARE: Mapping[str, np.ufunc] = {
    "oeq": np.equal,
    "une": np.not_equal,
    "oge": np.greater_equal,
    "ole": np.less_equal,
    "ogt": np.greater,
    "olt": np.less,
}


class NumpyArithmetic:
    """`ops.function_forms.Arithmetic` in the precision of its operands."""

    def number(self, value: float, like: Floats) -> Floats:
        """Return one number, which broadcasts."""
        return np.asarray(value, like.dtype)

    def add(self, a: Floats, b: Floats) -> Floats:
        """a + b."""
        return a + b

    def sub(self, a: Floats, b: Floats) -> Floats:
        """a - b."""
        return a - b

    def mul(self, a: Floats, b: Floats) -> Floats:
        """a * b."""
        return a * b

    def div(self, a: Floats, b: Floats) -> Floats:
        """a / b."""
        return a / b

    def maximum(self, a: Floats, b: Floats) -> Floats:
        """Return the larger."""
        return np.maximum(a, b)

    def minimum(self, a: Floats, b: Floats) -> Floats:
        """Return the smaller."""
        return np.minimum(a, b)

    def unary(self, name: str, a: Floats) -> Floats:
        """Return a function of one number by MLIR's name."""
        result: Floats = _UNARY[name](a)
        return result

    def compare(self, predicate: str, a: Floats, b: Floats) -> Floats:
        """Return 1 where the predicate holds, else 0."""
        held: Floats = _COMPARE[predicate](a, b).astype(np.result_type(a, b))
        return held

    def choose(self, chosen: Floats, a: Floats, b: Floats) -> Floats:
        """Return the second where the first is not 0, else the third."""
        return np.where(chosen != 0, a, b)

    def above(self, value: Floats, limit: float, a: Floats, b: Floats) -> Floats:
        """Return `a` where the value is above the limit, else `b`."""
        return np.where(value > limit, a, b)
