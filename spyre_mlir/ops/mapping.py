"""`map_op`: an operation that is one hardware function, declared by another package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial, wraps
from inspect import signature
from typing import cast

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.call_info import Hook
from spyre_mlir.ops.hardware_functions import FUNCTIONS, function_of
from spyre_mlir.ops.helpers.reduction_dims import reduced_shape
from spyre_mlir.ops.operator_names import canonical
from spyre_mlir.ops.registry import check_callable, declared, owner_of, register_decomposition, registered_name
from spyre_mlir.ops.table import Family, OpEntry, Sample, Unit
from spyre_mlir.ops.value import Argument, Caller, Operand, Value

_OVERRIDE = "override::"


def map_op(
    op: str,
    opfunc: str,
    *,
    op_info: Mapping[str, str] | None = None,
    combine: str | None = None,
    unit: Unit = Unit.SFP,
    fp32: bool = False,
    ulps: float = 1.0,
    source: str = "",
    samples: Sequence[Sample] = (),
    override: bool = False,
) -> Callable[[Hook], OpEntry]:
    """Decorator that maps an operation to one hardware function; the decorated function computes it in numpy.

    Args:
        op: the operation.
        opfunc: the hardware function, as SuperDSC names it.
        op_info: arguments that are no tensors, to the constants of the hardware function.
        combine: for a reduction: the scalar operation that folds, e.g. ``arith.addf``. The decorated function takes
            ``dim`` and ``keepdim``.
        unit: where the function runs.
        fp32: whether it takes IEEE_FP32 as well as DL16.
        ulps: allowed error in units in the last place.
        source: where the claim comes from.
        samples: arguments for tests.
        override: map an operation of the op table too: a decomposition makes its calls calls of ``override::name``.

    Raises:
        RegistrationError: the operation has an owner already, and `override` is not set; both are named. Or there is no
            such hardware function, or it has no such constants or folds in another way, or the decorated function lacks
            parameters.
    """

    def add(function: Hook) -> OpEntry:
        check_callable(op, function)
        name = _free_name(op, function, override=override)
        _check_parameters(op, function, constants, folds=combine is not None)
        entry = declared(
            partial(ATEN.declare, Family.POINTWISE if combine is None else Family.REDUCTION),
            function,
            aten=[name],
            opfunc=opfunc,
            op_info=constants,
            unit=unit,
            fp32=fp32,
            ulps=ulps,
            source=source,
            owner=owner_of(function),
            **({} if combine is None else {"shape": reduced_shape, "combine": combine}),
        )
        ATEN.samples(entry, *samples)
        if name.startswith(_OVERRIDE):
            register_decomposition(op)(_call_of(entry, function))
        return entry

    constants = dict(op_info or {})
    _check_function(op, opfunc, constants, combine)
    return add


def _call_of(entry: OpEntry, function: Hook) -> Hook:
    """Return a decomposition of an operation into the call of an entry, with the arguments that the entry has."""

    @wraps(function)
    def call(build: Caller, **bound: Argument) -> Value:
        tensors = [cast(Operand, bound[p.name]) for p in entry.params if p.is_tensor]
        return build.call(
            entry.overloads[0], *tensors, **{p.name: bound[p.name] for p in entry.params if not p.is_tensor}
        )

    return call


def _check_function(op: str, opfunc: str, op_info: Mapping[str, str], combine: str | None) -> None:
    """Raises RegistrationError if there is no such hardware function, or it has other constants or folds otherwise."""
    function = function_of(opfunc)
    if function is None:
        near = get_close_matches(opfunc, FUNCTIONS, n=1)
        raise RegistrationError(
            f"{op} is mapped to the hardware function {opfunc}, which does not exist",
            hint=f"did you mean {near[0]}?" if near else "docs/reference/superdsc.md lists them",
        )
    if wrong := [constant for constant in op_info.values() if constant not in function.constants]:
        known = ", ".join(function.constants) or "none"
        raise RegistrationError(
            f"{op}: the hardware function {opfunc} has no constant {', '.join(wrong)}", hint=f"its constants: {known}"
        )
    if function.combine != combine:
        own = f"combine={function.combine!r}" if function.combine is not None else "no combine: it folds nothing"
        raise RegistrationError(
            f"{op}: the hardware function {opfunc} has {own}, got {combine!r}",
            hint="leave combine out" if function.combine is None else f"write {own}",
        )


def _check_parameters(op: str, function: Hook, op_info: Mapping[str, str], *, folds: bool) -> None:
    """Raises RegistrationError if a function lacks parameters: for constants, or those that say what is folded."""
    known, owner = signature(function).parameters, owner_of(function)
    if strange := [name for name in op_info if name not in known]:
        raise RegistrationError(f"{op}: {owner} has no parameter {', '.join(strange)}, which op_info names")
    if folds and (missing := [name for name in ("dim", "keepdim") if name not in known]):
        raise RegistrationError(
            f"{op}: {owner} has no parameter {' and no parameter '.join(missing)}, and a reduction has both",
            hint="declare it as (self: Lanes, *, dim: Ints, keepdim: bool = False); an operation without them is "
            "decomposed into one that has them, see register_decomposition",
        )


def _free_name(op: str, function: object, *, override: bool) -> str:
    """Return the name of the entry of an operation: another one than its own if it overrides the op table.

    Raises:
        RegistrationError: the op table has the operation already, and `override` is not set.
    """
    key, taken = registered_name(op), ATEN.find(registered_name(op))
    if override:
        return key if taken is None else f"{_OVERRIDE}{key}"
    _check_free(op, function)
    return key


def _check_free(op: str, function: object) -> None:
    """Raises RegistrationError if the op table has an operation already."""
    taken = ATEN.find(canonical(op))
    if taken is not None:
        owner = taken.owner or owner_of(taken.decompose if taken.family is Family.COMPOSITE else taken.meaning)
        raise RegistrationError(
            f"{op} is claimed by both {owner} and {owner_of(function)}",
            hint="override=True maps it all the same; a decomposition precedes the op table too",
        )


__all__ = ["map_op"]
