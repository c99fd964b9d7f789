"""What each hardware function computes, in exact maths on numpy arrays.

The machine asks only `meaning_of`; whoever holds the meanings can change without the machine noticing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.memory import Floats

Constants = Mapping[str, float]


@dataclass(frozen=True)
class Pointwise:
    """One result element from the elements at the same place.

    Args:
        apply: arrays that broadcast against each other, and the named constants, to the result.
        selects: the first operand picks between the other two, so only what is picked counts as read.
    """

    apply: Callable[[Sequence[Floats], Constants], Floats]
    selects: bool = False


@dataclass(frozen=True)
class Movement:
    """Copies elements without looking at them."""


@dataclass(frozen=True)
class Reduction:
    """Folds the dims its result lacks.

    Args:
        fold: combines two partial results; also used across the cores of a cohort.
        absolute: whether magnitudes are folded.
        factor: constant that the folded value is multiplied by, if any.
    """

    fold: np.ufunc
    absolute: bool = False
    factor: str | None = None


@dataclass(frozen=True)
class Contraction:
    """A sum of products over the dims its result lacks."""


Meaning = Pointwise | Movement | Reduction | Contraction

_erf = np.frompyfunc(math.erf, 1, 1)


def _sigmoid(x: Floats) -> Floats:
    # The two branches of tanh never overflow, so neither does this form.
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _gelu(x: Floats) -> Floats:
    return 0.5 * x * (1.0 + np.asarray(_erf(x / math.sqrt(2.0)), dtype=np.float64))


def _softplus(args: Sequence[Floats], constants: Constants) -> Floats:
    beta, threshold = constants["softplusBeta"], constants["softplusThresh"]
    scaled = args[0] * beta
    return np.where(scaled > threshold, args[0], np.logaddexp(0.0, scaled) / beta)


def _unary(function: Callable[[Floats], Floats]) -> Pointwise:
    return Pointwise(lambda args, _: function(args[0]))


def _binary(function: Callable[[Floats, Floats], Floats]) -> Pointwise:
    return Pointwise(lambda args, _: function(args[0], args[1]))


def _compare(function: Callable[[Floats, Floats], object]) -> Pointwise:
    return Pointwise(lambda args, _: np.asarray(function(args[0], args[1]), dtype=np.float64))


# SuperDSC function names and their semantics: draft SuperDSC specification, "Supported OpFuncs"; likely.
_MEANINGS: dict[str, Meaning] = {
    "add": _binary(np.add),
    "sub": _binary(np.subtract),
    "mul": _binary(np.multiply),
    "realdiv": _binary(np.divide),
    "maximum": _binary(np.maximum),
    "minimum": _binary(np.minimum),
    "addi32toi32": _binary(np.add),
    "muli32toi32": _binary(np.multiply),
    "equal": _compare(np.equal),
    "notequal": _compare(np.not_equal),
    "greaterequal": _compare(np.greater_equal),
    "lesserequal": _compare(np.less_equal),
    "greaterthan": _compare(np.greater),
    "lesserthan": _compare(np.less),
    "where3": Pointwise(lambda args, _: np.where(args[0] != 0, args[1], args[2]), selects=True),
    "abs": _unary(np.abs),
    "neg": _unary(np.negative),
    "reciprocal": _unary(lambda x: 1.0 / x),
    "relufwd": _unary(lambda x: np.maximum(x, 0.0)),
    "exp": _unary(np.exp),
    "sigmoid": _unary(_sigmoid),
    "silu": _unary(lambda x: x * _sigmoid(x)),
    "sqrt": _unary(np.sqrt),
    "rsqrt": _unary(lambda x: 1.0 / np.sqrt(x)),
    "log": _unary(np.log),
    "tanh": _unary(np.tanh),
    "gelufwd": _unary(_gelu),
    "floor": _unary(np.floor),
    "softplus": Pointwise(_softplus),
    "clip": Pointwise(lambda args, c: np.minimum(np.maximum(args[0], c["clipMin"]), c["clipMax"])),
    "identity": Movement(),
    "ReStickifyOpHBM": Movement(),
    "ReStickifyOpLx": Movement(),
    "sum": Reduction(np.add),
    "mean": Reduction(np.add, factor="scaling_factor"),
    "max": Reduction(np.maximum),
    "min": Reduction(np.minimum),
    "absmax": Reduction(np.maximum, absolute=True),
    "prod": Reduction(np.multiply),
    "batchmatmul": Contraction(),
}

_NONSTICK = "nonstick"


def known_op_funcs() -> tuple[str, ...]:
    """Names the machine can run."""
    return tuple(_MEANINGS)


def meaning_of(op_func: str) -> Meaning:
    """What a hardware function computes; a reduction's "nonstick" form means the same as its plain one.

    Raises:
        UnsupportedError: the machine has no rule for it.
    """
    name = op_func
    if name not in _MEANINGS and name.endswith(_NONSTICK):
        name = name.removesuffix(_NONSTICK)
    if name not in _MEANINGS:
        raise UnsupportedError(
            f"the machine has no rule for OpFunc {op_func!r}", hint=f"known: {', '.join(known_op_funcs())}"
        )
    return _MEANINGS[name]
