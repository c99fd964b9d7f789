"""Semantics of each hardware function, in exact arithmetic on numpy arrays.

The op table holds the meaning of every function that an ATen op stands for; this module says how the machine applies
it; functions that only lowerings emit have their meaning in their records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.arrangement import narrowed, widened
from spyre_mlir.machine.memory.exact import Floats
from spyre_mlir.machine.numpy_arithmetic import NumpyArithmetic
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.function_facts import HardwareFunction, LaneOrder
from spyre_mlir.ops.function_forms import Form
from spyre_mlir.ops.hardware_functions import FUNCTIONS, function_of
from spyre_mlir.ops.table import Family, OpEntry

FunctionConstants = Mapping[str, float]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Pointwise:
    """One result element from the elements at the same place.

    Args:
        apply: arrays that broadcast against each other, and the named constants, to the result.
        selects: the first operand picks between the other two, so only what is picked counts as read.
    """

    apply: Callable[[Sequence[Floats], FunctionConstants], Floats]
    selects: bool = False


@dataclass(frozen=True)
class Movement:
    """Copies elements.

    Args:
        lanes: the order they arrive in.
        rounded: whether they become eight-bit floats, in wide numerics too.
    """

    lanes: LaneOrder = LaneOrder.KEPT
    rounded: bool = False


@dataclass(frozen=True)
class Reduction:
    """Reduces the dims its result lacks.

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


# How records name a reduction's combining operation.
_FOLDS: dict[str, np.ufunc] = {
    "arith.addf": np.add,
    "arith.mulf": np.multiply,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
}


def known_op_funcs() -> tuple[str, ...]:
    """Return the names of functions the machine can run, sorted."""
    return tuple(sorted(name for name, function in FUNCTIONS.items() if _rule(function) is not None))


def meaning_of(op_func: str) -> Meaning:
    """Return the semantics of a hardware function; a reduction's "nonstick" form means the same as its plain one.

    Raises:
        UnsupportedError: the machine has no rule for it.
    """
    function, entry = function_of(op_func), ATEN.by_opfunc(op_func)
    rule = _rule_of_entry(entry) if function is None else _rule(function)
    if rule is None:
        hint = f"known: {', '.join(known_op_funcs())}"
        raise UnsupportedError(f"the machine has no rule for OpFunc {op_func!r}", hint=hint)
    return rule


def _rule(function: HardwareFunction) -> Meaning | None:
    """Return the machine's rule for a hardware function; None where there is none, or a special one elsewhere."""
    if function.contracts:
        return Contraction(function.packed)
    if function.lane_order is not None:
        return Movement(function.lane_order, function.eight_bits)
    if function.combine is not None:
        return Reduction(_FOLDS[function.combine], function.absolute, function.factor)
    entry = ATEN.by_opfunc(function.name)
    if entry is not None and entry.family is Family.POINTWISE:
        return Pointwise(_elementwise(entry), function.selects)
    if function.form is not None:
        return Pointwise(partial(_evaluated, function.form))
    return None


def _rule_of_entry(entry: OpEntry | None) -> Meaning | None:
    """How the machine applies a function that only an op declares, as a plugin's may."""
    if entry is None:
        return None
    match entry.family:
        case Family.POINTWISE:
            return Pointwise(_elementwise(entry))
        case Family.MOVEMENT:
            return Movement()
        case Family.CONTRACTION:
            return Contraction()
        case Family.REDUCTION if entry.combine in _FOLDS:
            return Reduction(_FOLDS[entry.combine])
        case _:
            return None


def _evaluated(form: Form, args: Sequence[Floats], constants: FunctionConstants) -> Floats:
    return cast(Floats, form(NumpyArithmetic(), *args, **constants))


def _elementwise(entry: OpEntry) -> Callable[[Sequence[Floats], FunctionConstants], Floats]:
    def apply(args: Sequence[Floats], constants: FunctionConstants) -> Floats:
        result = np.asarray(entry.meaning(*args, **entry.numbers(constants)))
        return result if result.dtype.kind == "f" else result.astype(np.result_type(*args))

    return apply


def rearranged(values: npt.NDArray[Scalar], axis: int, lanes: LaneOrder, narrow_lanes: int) -> npt.NDArray[Scalar]:
    """Reorder elements as a change of width leaves them.

    Widening cuts every slice of a stick in two halves: first halves fill one wide stick, second halves the next.
    Narrowing puts them back.

    Args:
        values: elements in the order of the narrower or wider sticks they come from.
        axis: the stick dim.
        lanes: which change.
        narrow_lanes: elements per stick of the narrower format.
    """
    if lanes is LaneOrder.KEPT or values.shape[axis] == 1:
        return values
    return (widened if lanes is LaneOrder.WIDENED else narrowed)(values, axis, narrow_lanes)
