"""Functions that other packages register for operations: decompositions, lowerings, host steps, conversions.

Names of operations may be spelled as torch does in any place, see `ops.operator_names`. All look-ups give lists, the
highest priority first. `spyre_mlir.plugins.registry` has all of this together with passes and plugins.

Decision: docs/decisions/0074-who-computes-a-host-step.md
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import partial, wraps
from inspect import signature
from typing import Any, NoReturn, TypeVar, cast

from spyre_mlir.errors import RegistrationError, UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.call_info import Hook, Registered
from spyre_mlir.ops.hardware_functions import FUNCTIONS, function_of
from spyre_mlir.ops.helpers.reduction_dims import reduced_shape
from spyre_mlir.ops.operator_names import canonical, check_name, exists
from spyre_mlir.ops.table import Family, OpEntry, Sample, Unit
from spyre_mlir.ops.value import Argument, Caller, Operand, Value

F = TypeVar("F", bound=Hook)


class HookKind(Enum):
    """Kind of a registered function."""

    DECOMPOSITION = "decomposition"
    LOWERING = "lowering"
    FALLBACK = "fallback"
    CONVERSION = "conversion"
    EXECUTOR = "executor"


@dataclass
class _Registry:
    """What is registered.

    Attributes:
        functions: by kind and operation.
        whole: operations that stay whole, and for whom.
        unchecked: names that were registered before torch was loaded.
        met: operations that torch does not have, and a conversion made.
    """

    functions: dict[tuple[HookKind, str], list[Registered]] = field(
        default_factory=dict[tuple[HookKind, str], list[Registered]]
    )
    whole: dict[str, str] = field(default_factory=dict[str, str])
    unchecked: list[object] = field(default_factory=list[object])
    met: set[str] = field(default_factory=set[str])


_REGISTRY = _Registry()


@contextmanager
def isolated() -> Generator[None]:
    """Undo at the end of the block the functions registered inside it."""
    before = vars(deepcopy(_REGISTRY, {id(r): r for found in _REGISTRY.functions.values() for r in found}))
    try:
        with ATEN.isolated():
            yield
    finally:
        vars(_REGISTRY).update(before)


def _key(op: object) -> str:
    """Return the canonical name of an operation that is registered.

    Raises:
        RegistrationError: it is no name, or ATen has no such operator.
    """
    if not check_name(op):
        _REGISTRY.unchecked.append(op)
    return canonical(op)


def check_names() -> None:
    """Check the names that were registered before torch was loaded.

    Raises:
        RegistrationError: ATen has no such operator.
    """
    while _REGISTRY.unchecked:
        check_name(_REGISTRY.unchecked.pop())


def owner_of(function: object) -> str:
    """Return module and name of a function or class."""
    named = getattr(function, "__qualname__", None)  # operators of torch have none
    return str(function) if named is None else f"{getattr(function, '__module__', '?')}.{named}"


def _add(kind: HookKind, op: str, function: F, priority: int, when: Callable[..., bool] | None = None) -> F:
    _check_callable(op, function)
    name = _key(op)
    known = _REGISTRY.functions.setdefault((kind, name), [])
    new = Registered(name, function, owner_of(function), priority, when)
    for other in known:
        if other.priority == priority and other.when is None and when is None:
            raise RegistrationError(
                f"the {kind.value} of {op} is claimed by both {other.owner} and {new.owner}",
                hint="give one of them another priority, or a `when`",
            )
    known.append(new)
    known.sort(key=lambda r: -r.priority)
    return function


def _check_callable(op: str, function: object) -> None:
    if not callable(function):
        raise RegistrationError(f"a function is registered for {op}, got {function!r}", hint="use it as a decorator")


def find(kind: HookKind, op: str) -> list[Registered]:
    """Return the registered functions for an operation, the highest priority first."""
    found = _REGISTRY.functions.get((kind, op)) or _REGISTRY.functions.get((kind, canonical(op)))
    return list(found or ())


def get_conversion_fn(op: str) -> Hook | None:
    """Return the function that `register_op` got for an operation, of the highest priority; None if there is none."""
    return next((found.function for found in find(HookKind.CONVERSION, op)), None)


def get_execution_fn(op: str) -> Hook | None:
    """Return the function that `register_executor` got for an operation; None if there is none."""
    return next((found.function for found in find(HookKind.EXECUTOR, op)), None)


def meet(op: str) -> None:
    """Note that a program has an operation which torch does not have, as a conversion gave a call this type."""
    _REGISTRY.met.add(canonical(op))


def unknown_ops() -> list[str]:
    """Return registered operations that neither torch has nor a conversion made, sorted; torch has to be loaded."""
    return [op for op in registered_ops() if not exists(op) and op not in _REGISTRY.met]


def registered_ops() -> list[str]:
    """Operations with at least one registered function, sorted."""
    return sorted({op for _, op in _REGISTRY.functions} | {e.overloads[0] for e in ATEN if e.owner})


def registrations() -> list[object]:
    """Return all functions and entries registered, in an order that does not depend on when."""
    entries = sorted((e for e in ATEN if e.owner), key=lambda e: e.name)
    functions = sorted(_REGISTRY.functions.items(), key=lambda item: (item[0][0].value, item[0][1]))
    return [*entries, *(item for item in functions if item[1]), *sorted(_REGISTRY.whole.items())]


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
        combine: for a reduction over ``dim``: the scalar operation that folds, e.g. ``arith.addf``.
        unit: where the function runs.
        fp32: whether it takes IEEE_FP32 as well as DL16.
        ulps: allowed error in units in the last place.
        source: where the claim comes from.
        samples: arguments for tests.
        override: map an operation of the op table too: a decomposition makes its calls calls of ``override::name``.

    Raises:
        RegistrationError: the operation has an owner already, and `override` is not set; both are named. Or there is no
            such hardware function, or it has no such constants.
    """

    def add(function: Hook) -> OpEntry:
        _check_callable(op, function)
        family = Family.POINTWISE if combine is None else Family.REDUCTION
        facts = {"shape": reduced_shape, "combine": combine} if combine is not None else {}
        key = _key(op)
        taken = override and ATEN.find(key) is not None
        if not taken:
            _check_free(op, function)
        _check_parameters(op, function, op_info or {})
        entry = _declared(
            partial(ATEN.declare, family),
            function,
            aten=[f"override::{key}" if taken else key],
            opfunc=opfunc,
            op_info=dict(op_info or {}),
            unit=unit,
            fp32=fp32,
            ulps=ulps,
            source=source,
            owner=owner_of(function),
            **facts,
        )
        ATEN.samples(entry, *samples)
        if taken:
            register_decomposition(op)(_call_of(entry, function))
        return entry

    _check_constants(op, opfunc, op_info or {})
    return add


def _declared(declare: Hook, function: Hook, **facts: Any) -> OpEntry:
    """The entry of a function in the op table.

    Raises:
        RegistrationError: its parameters do not say what they hold, or its name is taken.
    """
    try:
        return cast(OpEntry, declare(**facts)(function))
    except (TypeError, ValueError) as error:
        raise RegistrationError(
            f"{owner_of(function)} cannot be declared: {error}", hint="annotate its parameters as the op table does"
        ) from error


def _call_of(entry: OpEntry, function: Hook) -> Hook:
    """Return a decomposition of an operation into the call of an entry, with the arguments that the entry has."""

    @wraps(function)
    def call(build: Caller, **bound: Argument) -> Value:
        tensors = [cast(Operand, bound[p.name]) for p in entry.params if p.is_tensor]
        return build.call(
            entry.overloads[0], *tensors, **{p.name: bound[p.name] for p in entry.params if not p.is_tensor}
        )

    return call


def _check_constants(op: str, opfunc: str, op_info: Mapping[str, str]) -> None:
    """Raises RegistrationError if there is no such hardware function, or it has no constants of these names."""
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


def _check_parameters(op: str, function: Hook, op_info: Mapping[str, str]) -> None:
    """Raises RegistrationError if a function has no parameters of the names that stand for constants."""
    if strange := [name for name in op_info if name not in signature(function).parameters]:
        raise RegistrationError(
            f"{op}: {owner_of(function)} has no parameter {', '.join(strange)}, which op_info names"
        )


def _check_free(op: str, function: object) -> None:
    """Raises RegistrationError if the op table has an operation already."""
    taken = ATEN.find(canonical(op))
    if taken is not None:
        owner = taken.owner or owner_of(taken.decompose if taken.family is Family.COMPOSITE else taken.meaning)
        raise RegistrationError(
            f"{op} is claimed by both {owner} and {owner_of(function)}",
            hint="override=True maps it all the same; a decomposition precedes the op table too",
        )


def register_decomposition(
    op: str, *, when: Callable[..., bool] | None = None, priority: int = 0, promote: bool = False, ulps: float = 16.0
) -> Callable[[F], F]:
    """Decorator: the function below builds an operation from other operations; see `spyre_mlir.ops.build.Build`.

    It goes before what the op table says. Returning None passes the call on, to the next of lower priority, to the op
    table, at last to the host.

    Args:
        op: the operation; one that the op table lacks is added to it, with the parameters of the function.
        when: whether it is for a call, given the `Build` and the arguments: routes by element type or shape.
        priority: the highest is asked first.
        promote: for a new operation: bring the operands to the element type of the result at import.
        ulps: for a new operation: allowed error in units in the last place.

    Raises:
        RegistrationError: another function has the same operation and priority; both are named.
    """

    def add(function: F) -> F:
        _check_callable(op, function)
        if ATEN.find(key := _key(op)) is None:
            # Its rewrites are those that are registered; the entry's own is asked where none of them wants a call.
            _declared(
                partial(ATEN.composed, decompose=partial(_none_wants, key)),
                function,
                aten=[key],
                promote=promote,
                ulps=ulps,
                owner=owner_of(function),
            )
        return _add(HookKind.DECOMPOSITION, op, function, priority, when)

    return add


def _none_wants(op: str, *_: object, **__: object) -> NoReturn:
    raise UnsupportedError(f"no decomposition of {op} is for these arguments", hint="register one, or a fallback")


def keep_whole(op: str, *, owner: str = "") -> None:
    """Disable the op table's decompositions of an operation, torch's own included."""
    _REGISTRY.whole[_key(op)] = owner


def is_kept_whole(op: str) -> bool:
    """Return whether `keep_whole` was called for an operation."""
    return canonical(op) in _REGISTRY.whole


def kept_whole() -> list[str]:
    """Operations that `keep_whole` was called for, sorted."""
    return sorted(_REGISTRY.whole)


def register_lowering(op: str, *, priority: int = 0) -> Callable[[F], F]:
    """Decorator: the function below lowers an operation to `spyre.loop`.

    It is called with the `LoopBuilder` of `convert-aten-to-spyre-loop`, the op and its entry or None, and gives a
    `Reading`, or one per result.
    """
    return lambda function: _add(HookKind.LOWERING, op, function, priority)


def register_fallback(op: str, *, when: Callable[..., bool] | None = None, priority: int = 0) -> Callable[[F], F]:
    """Decorator: the operation becomes a host step, computed by the function below.

    The function takes the arguments of the schema with torch tensors, and gives a tensor or several.

    Args:
        op: the operation.
        when: whether it is for a call, given the `Build` and the arguments.
        priority: the highest is asked first.
    """
    return lambda function: _add(HookKind.FALLBACK, op, function, priority, when)


def register_op(op: str, *, priority: int = 0) -> Callable[[F], F]:
    """Decorator: at import the function below replaces a call of an operation by other operations, or by an `OpNode`.

    It is called with a `NodeInfo`, and with a `Build` if it takes a second argument. It gives a list with one value per
    result, or an `OpNode`, which the executor of its type computes.
    """
    return lambda function: _add(HookKind.CONVERSION, op, function, priority)


def register_executor(op: str, *, priority: int = 0) -> Callable[[F], F]:
    """Decorator: the function below computes an operation on the host, where torch cannot or shall not.

    It is called with the list of its tensors and the dictionary of its other arguments, defaults of the schema among
    them, and gives a list of tensors. An operation of ATen becomes a host step by it, unless a decomposition is
    registered too.
    """
    return lambda function: _add(HookKind.EXECUTOR, op, function, priority)
