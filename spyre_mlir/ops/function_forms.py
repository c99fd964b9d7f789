"""Hardware functions as arithmetic: one expression each, for every builder that has the operations below.

KTIR builds tensors with it, and the machine computes numbers for functions that no ATen op stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Form = Callable[..., Any]


class Arithmetic(Protocol[T]):
    """Operations on values of one shape."""

    def number(self, value: float, like: T) -> T:
        """One number everywhere."""
        ...

    def add(self, a: T, b: T) -> T:
        """a + b."""
        ...

    def sub(self, a: T, b: T) -> T:
        """a - b."""
        ...

    def mul(self, a: T, b: T) -> T:
        """a * b."""
        ...

    def div(self, a: T, b: T) -> T:
        """a / b."""
        ...

    def maximum(self, a: T, b: T) -> T:
        """The larger."""
        ...

    def minimum(self, a: T, b: T) -> T:
        """The smaller."""
        ...

    def unary(self, name: str, a: T) -> T:
        """A function of one number by MLIR's name: ``math.exp``, ``arith.negf``."""
        ...

    def compare(self, predicate: str, a: T, b: T) -> T:
        """1 where the predicate of ``arith.cmpf`` holds, else 0."""
        ...

    def choose(self, chosen: T, a: T, b: T) -> T:
        """The second where the first is not 0, else the third."""
        ...

    def above(self, value: T, limit: float, a: T, b: T) -> T:
        """`a` where the value is above the limit, else `b`."""
        ...


def unary(name: str) -> Form:
    """The form of a function that is one op of MLIR."""

    def form(f: Arithmetic[T], x: T) -> T:
        return f.unary(name, x)

    return form


def compare(predicate: str) -> Form:
    """The form of a comparison."""

    def form(f: Arithmetic[T], a: T, b: T) -> T:
        return f.compare(predicate, a, b)

    return form


def same(_: Arithmetic[T], x: T) -> T:
    """x."""
    return x


def add(f: Arithmetic[T], a: T, b: T) -> T:
    """a + b."""
    return f.add(a, b)


def sub(f: Arithmetic[T], a: T, b: T) -> T:
    """a - b."""
    return f.sub(a, b)


def reversed_sub(f: Arithmetic[T], a: T, b: T) -> T:
    """b - a."""
    return f.sub(b, a)


def mul(f: Arithmetic[T], a: T, b: T) -> T:
    """a * b."""
    return f.mul(a, b)


def div(f: Arithmetic[T], a: T, b: T) -> T:
    """a / b."""
    return f.div(a, b)


def maximum(f: Arithmetic[T], a: T, b: T) -> T:
    """The larger."""
    return f.maximum(a, b)


def minimum(f: Arithmetic[T], a: T, b: T) -> T:
    """The smaller."""
    return f.minimum(a, b)


def choose(f: Arithmetic[T], chosen: T, a: T, b: T) -> T:
    """The second where the first is not 0, else the third."""
    return f.choose(chosen, a, b)


def scaled_and_shifted(f: Arithmetic[T], x: T, scale: T, shift: T) -> T:
    """scale * x + shift."""
    return f.add(f.mul(scale, x), shift)


def normalised(f: Arithmetic[T], x: T, mean: T, norm: T, weight: T, bias: T) -> T:
    """(x - mean) * norm * weight + bias."""
    return f.add(f.mul(f.mul(f.sub(x, mean), norm), weight), bias)


def relu(f: Arithmetic[T], x: T) -> T:
    """max(x, 0)."""
    return f.maximum(x, f.number(0.0, x))


def relu6(f: Arithmetic[T], x: T) -> T:
    """x clipped to 0 and 6."""
    return f.minimum(f.maximum(x, f.number(0.0, x)), f.number(6.0, x))


def reciprocal(f: Arithmetic[T], x: T) -> T:
    """1 / x."""
    return f.div(f.number(1.0, x), x)


def sigmoid(f: Arithmetic[T], x: T) -> T:
    """1 / (1 + e^-x)."""
    one = f.number(1.0, x)
    return f.div(one, f.add(one, f.unary("math.exp", f.unary("arith.negf", x))))


def silu(f: Arithmetic[T], x: T) -> T:
    """x times its sigmoid."""
    return f.mul(x, sigmoid(f, x))


def _log_of_one_more(f: Arithmetic[T], x: T, like: T) -> T:
    """log(1 + e^-|x|)."""
    falling = f.unary("math.exp", f.unary("arith.negf", f.unary("math.absf", x)))
    return f.unary("math.log", f.add(f.number(1.0, like), falling))


def mish(f: Arithmetic[T], x: T) -> T:
    """x tanh(log(1 + e^x)); the logarithm is max(x, 0) + log(1 + e^-|x|), which does not overflow."""
    rest = _log_of_one_more(f, x, x)
    return f.mul(x, f.unary("math.tanh", f.add(relu(f, x), rest)))


def gelu(f: Arithmetic[T], x: T) -> T:
    """x / 2 * (1 + erf(x / sqrt(2)))."""
    scaled = f.mul(x, f.number(1.0 / math.sqrt(2.0), x))
    upper = f.add(f.number(1.0, x), f.unary("math.erf", scaled))
    return f.mul(f.mul(x, f.number(0.5, x)), upper)


def softplus(f: Arithmetic[T], x: T, *, softplusBeta: float, softplusThresh: float) -> T:  # noqa: N803 - names of files
    """log(1 + e^(beta x)) / beta, without overflow; x itself where beta x is above the threshold."""
    scaled = f.mul(x, f.number(softplusBeta, x))
    rest = _log_of_one_more(f, scaled, x)
    positive = f.maximum(scaled, f.number(0.0, x))
    soft = f.div(f.add(positive, rest), f.number(softplusBeta, x))
    return f.above(scaled, softplusThresh, x, soft)
