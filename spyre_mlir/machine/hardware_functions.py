"""What each hardware function computes, in exact maths on numpy arrays.

The op table holds the meaning of every function that an ATen op stands for; this module says how the machine applies
it, and adds the few functions that only lowerings emit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.arrangement import narrowed, widened
from spyre_mlir.machine.memory.exact import Floats
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family, OpEntry

Constants = Mapping[str, float]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Pointwise:
    """One result element from the elements at the same place.

    Args:
        apply: arrays that broadcast against each other, and the named constants, to the result.
        selects: the first operand picks between the other two, so only what is picked counts as read.
    """

    apply: Callable[[Sequence[Floats], Constants], Floats]
    selects: bool = False


class Lanes(Enum):
    """What a change of element width does to the order of elements along the stick."""

    KEPT = "kept"
    WIDENED = "widened"
    NARROWED = "narrowed"


@dataclass(frozen=True)
class Movement:
    """Copies elements.

    Args:
        lanes: the order they arrive in.
        rounded: whether they become eight-bit floats, in wide numerics too.
    """

    lanes: Lanes = Lanes.KEPT
    rounded: bool = False


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
    """A sum of products over the dims its result lacks.

    Args:
        packed: whether the lanes of the first operand hold its elements as a conversion to 8 bits leaves them.
    """

    packed: bool = False


Meaning = Pointwise | Movement | Reduction | Contraction


# Functions no ATen op stands for alone: draft SuperDSC specification, "Supported OpFuncs"; likely.
_OWN: dict[str, Meaning] = {
    "ReStickifyOpHBM": Movement(),
    "ReStickifyOpLx": Movement(),
    "dl16tofp32": Movement(Lanes.WIDENED),
    "fp32todl16": Movement(Lanes.NARROWED),
    "fp8todl16": Movement(Lanes.WIDENED),
    "qfp8ch": Movement(Lanes.NARROWED, rounded=True),
    "batchmatmulfp8": Contraction(packed=True),
    "int32tofp32": Movement(),
    "fp32toint32": Pointwise(lambda args, _: np.trunc(args[0])),
    "addi32toi32": Pointwise(lambda args, _: args[0] + args[1]),
    "muli32toi32": Pointwise(lambda args, _: args[0] * args[1]),
    "revsub": Pointwise(lambda args, _: args[1] - args[0]),
    "biasadd": Pointwise(lambda args, _: args[0] + args[1]),
    "batchnormfwd": Pointwise(lambda args, _: args[1] * args[0] + args[2]),
    "layernormnorm": Pointwise(lambda args, _: (args[0] - args[1]) * args[2] * args[3] + args[4]),
    "relu6fwd": Pointwise(lambda args, _: np.clip(args[0], 0, 6)),
    "mish": Pointwise(lambda args, _: args[0] * np.tanh(np.logaddexp(0.0, args[0]))),
    "fastexp": Pointwise(lambda args, _: np.exp(args[0])),
    "fastsigmoid": Pointwise(lambda args, _: 1 / (1 + np.exp(-args[0]))),
    "mean": Reduction(np.add, factor="scaling_factor"),
    "absmax": Reduction(np.maximum, absolute=True),
    "prod": Reduction(np.multiply),
}

# How the op table names a reduction's combining operation.
_FOLDS: dict[str, np.ufunc] = {"arith.addf": np.add, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum}

_SELECT = "where3"
_NONSTICK = "nonstick"


def known_op_funcs() -> tuple[str, ...]:
    """Names the machine can run, sorted."""
    return tuple(sorted({*_OWN, *(entry.opfunc for entry in ATEN if _rule(entry) is not None and entry.opfunc)}))


def meaning_of(op_func: str) -> Meaning:
    """What a hardware function computes; a reduction's "nonstick" form means the same as its plain one.

    Raises:
        UnsupportedError: the machine has no rule for it.
    """
    for name in (op_func, op_func.removesuffix(_NONSTICK)):
        entry = ATEN.by_opfunc(name)
        rule = _OWN.get(name) if entry is None else _rule(entry)
        if rule is not None:
            return rule
    hint = f"known: {', '.join(known_op_funcs())}"
    raise UnsupportedError(f"the machine has no rule for OpFunc {op_func!r}", hint=hint)


def _rule(entry: OpEntry) -> Meaning | None:
    """How the machine applies an entry of the op table; None where it cannot."""
    if entry.opfunc in _OWN:
        return _OWN[entry.opfunc]
    if entry.family is Family.POINTWISE:
        return Pointwise(_elementwise(entry), selects=entry.opfunc == _SELECT)
    if entry.family is Family.MOVEMENT:
        return Movement()
    if entry.family is Family.CONTRACTION:
        return Contraction()
    if entry.family is Family.REDUCTION and entry.combine in _FOLDS:
        return Reduction(_FOLDS[entry.combine])
    return None


def _elementwise(entry: OpEntry) -> Callable[[Sequence[Floats], Constants], Floats]:
    def apply(args: Sequence[Floats], constants: Constants) -> Floats:
        result = np.asarray(entry.meaning(*args, **entry.numbers(constants)))
        return result if result.dtype.kind == "f" else result.astype(np.result_type(*args))

    return apply


def rearranged(values: npt.NDArray[Scalar], axis: int, lanes: Lanes, narrow_lanes: int) -> npt.NDArray[Scalar]:
    """Bring elements into the order a change of width leaves them in.

    Widening cuts every slice of a stick in two halves: first halves fill one wide stick, second halves the next.
    Narrowing puts them back.

    Args:
        values: elements in the order of the narrower or wider sticks they come from.
        axis: the stick dim.
        lanes: which change.
        narrow_lanes: elements per stick of the narrower format.
    """
    if lanes is Lanes.KEPT or values.shape[axis] == 1:
        return values
    return (widened if lanes is Lanes.WIDENED else narrowed)(values, axis, narrow_lanes)
