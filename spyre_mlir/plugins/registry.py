"""Extension points for other packages: operations, decompositions, lowerings, host steps, passes.

A plugin calls these functions, or names a function that does under the entry point group `spyre_mlir.plugins`.
Names of operations are ATen's (``erfinv``, ``max.dim``) or ``namespace::name`` for others; a leading ``aten.`` may be
written. All look-ups give lists, the highest priority first.

Decision: docs/decisions/0074-who-computes-a-host-step.md
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, partial
from importlib.metadata import entry_points
from inspect import signature
from typing import Any, TypeVar, cast

from xdsl.passes import ModulePass

from spyre_mlir.errors import RegistrationError, UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.hardware_functions import function_of
from spyre_mlir.ops.helpers.reduction_dims import reduced_shape
from spyre_mlir.ops.table import Family, OpEntry, Sample, Unit
from spyre_mlir.plugins.call_info import MISTAKES
from spyre_mlir.plugins.call_info import NodeInfo as NodeInfo  # noqa: PLC0414 - part of this interface
from spyre_mlir.plugins.call_info import Registered as Registered  # noqa: PLC0414 - part of this interface
from spyre_mlir.plugins.call_info import TensorMeta as TensorMeta  # noqa: PLC0414 - part of this interface

GROUP = "spyre_mlir.plugins"
F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P", bound=type[ModulePass])


class HookKind(Enum):
    """Kind of a registered function."""

    DECOMPOSITION = "decomposition"
    LOWERING = "lowering"
    FALLBACK = "fallback"
    CONVERSION = "conversion"
    EXECUTOR = "executor"


class PassHook(Enum):
    """Point of the pipeline at which a plugin's pass runs."""

    ATEN = "aten"
    DECOMPOSED = "aten-decomposed"
    LOOP = "spyre.loop"
    SCHEDULE = "spyre.kernel"


@dataclass
class _Registry:
    functions: dict[tuple[HookKind, str], list[Registered[Any]]] = field(default_factory=dict[Any, Any])
    passes: dict[PassHook, list[Registered[Any]]] = field(default_factory=dict[Any, Any])
    whole: dict[str, str] = field(default_factory=dict[str, str])


_REGISTRY = _Registry()


@contextmanager
def isolated() -> Generator[None]:
    """Undo at the end of the block everything registered inside it; for tests and notebooks.

    Plugins that are installed stay.
    """
    load_plugins()
    before = copy(_REGISTRY)
    _REGISTRY.functions = {key: list(found) for key, found in before.functions.items()}
    _REGISTRY.passes = {point: list(found) for point, found in before.passes.items()}
    _REGISTRY.whole = dict(before.whole)
    try:
        with ATEN.isolated():
            yield
    finally:
        _REGISTRY.functions, _REGISTRY.passes, _REGISTRY.whole = before.functions, before.passes, before.whole


def _key(op: object) -> str:
    if not isinstance(op, str) or not op:
        raise RegistrationError(
            f"an operation is named by text, got {op!r}",
            hint="'erfinv' and 'max.dim' of ATen, 'namespace::name' of others",
        )
    return op.removeprefix("aten.").removesuffix(".default")


def _owner(function: object) -> str:
    named = getattr(function, "__qualname__", None)  # operators of torch have none
    return str(function) if named is None else f"{getattr(function, '__module__', '?')}.{named}"


def _add(kind: HookKind, op: str, function: F, priority: int, when: Callable[..., bool] | None = None) -> F:
    _check_callable(op, function)
    known = _REGISTRY.functions.setdefault((kind, _key(op)), [])
    new = Registered(_key(op), function, _owner(function), priority, when)
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


def find(kind: HookKind, op: str) -> list[Registered[Any]]:
    """Return the registered functions for an operation, the highest priority first."""
    return list(_REGISTRY.functions.get((kind, _key(op)), ()))


def registered_ops() -> list[str]:
    """Operations with at least one registered function, sorted."""
    return sorted({op for _, op in _REGISTRY.functions} | {e.overloads[0] for e in ATEN if e.owner})


def registrations() -> list[object]:
    """Return everything registered, in an order that does not depend on when."""
    entries = sorted((e for e in ATEN if e.owner), key=lambda e: e.name)
    functions = sorted(_REGISTRY.functions.items(), key=lambda item: (item[0][0].value, item[0][1]))
    passes = [(point.value, passes_at(point)) for point in PassHook if passes_at(point)]
    return [*entries, *(item for item in functions if item[1]), *passes, *sorted(_REGISTRY.whole.items())]


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
) -> Callable[[Callable[..., Any]], OpEntry]:
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

    Raises:
        RegistrationError: the operation has an owner already; both are named. Or the hardware function has no such
            constants.
    """

    def add(function: Callable[..., Any]) -> OpEntry:
        _check_callable(op, function)
        family = Family.POINTWISE if combine is None else Family.REDUCTION
        facts = {"shape": reduced_shape, "combine": combine} if combine is not None else {}
        _check_free(op, function)
        if strange := [name for name in op_info or () if name not in signature(function).parameters]:
            raise RegistrationError(
                f"{op}: {_owner(function)} has no parameter {', '.join(strange)}, which op_info names"
            )
        entry = _declared(
            partial(ATEN.declare, family),
            function,
            aten=[_key(op)],
            opfunc=opfunc,
            op_info=dict(op_info or {}),
            unit=unit,
            fp32=fp32,
            ulps=ulps,
            source=source,
            owner=_owner(function),
            **facts,
        )
        ATEN.samples(entry, *samples)
        return entry

    _check_constants(op, opfunc, op_info or {})
    return add


def _declared(declare: Callable[..., Any], function: Callable[..., Any], **facts: Any) -> OpEntry:
    """The entry of a function in the op table.

    Raises:
        RegistrationError: its parameters do not say what they hold, or its name is taken.
    """
    try:
        return cast(OpEntry, declare(**facts)(function))
    except (TypeError, ValueError) as error:
        raise RegistrationError(
            f"{_owner(function)} cannot be declared: {error}", hint="annotate its parameters as the op table does"
        ) from error


def _check_constants(op: str, opfunc: str, op_info: Mapping[str, str]) -> None:
    """Raises RegistrationError if the hardware function has no constants of these names."""
    function = function_of(opfunc)
    wrong = [] if function is None else [c for c in op_info.values() if c not in function.constants]
    if function is not None and wrong:
        known = ", ".join(function.constants) or "none"
        raise RegistrationError(
            f"{op}: the hardware function {opfunc} has no constant {', '.join(wrong)}", hint=f"its constants: {known}"
        )


def _check_free(op: str, function: object) -> None:
    """Raises RegistrationError if the op table has an operation already."""
    taken = ATEN.find(_key(op))
    if taken is not None:
        owner = taken.owner or _owner(taken.decompose if taken.family is Family.COMPOSITE else taken.meaning)
        raise RegistrationError(
            f"{op} is claimed by both {owner} and {_owner(function)}",
            hint="register a decomposition instead, which precedes the op table",
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
        if ATEN.find(_key(op)) is None:
            # Its rewrites are those that are registered; the entry's own is asked where none of them wants a call.
            _declared(
                partial(ATEN.composed, decompose=partial(_none_wants, _key(op))),
                function,
                aten=[_key(op)],
                promote=promote,
                ulps=ulps,
                owner=_owner(function),
            )
        return _add(HookKind.DECOMPOSITION, op, function, priority, when)

    return add


def _none_wants(op: str, *_: object, **__: object) -> Any:
    raise UnsupportedError(f"no decomposition of {op} is for these arguments", hint="register one, or a fallback")


def keep_whole(op: str, *, owner: str = "") -> None:
    """Disable the op table's decompositions of an operation, torch's own included."""
    _REGISTRY.whole[_key(op)] = owner


def is_kept_whole(op: str) -> bool:
    """Return whether `keep_whole` was called for an operation."""
    return _key(op) in _REGISTRY.whole


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
    """Decorator: at import the function below replaces a call of an operation by other operations, with a `Build`.

    It is called with a `NodeInfo` and a `Build`, and gives a list with one value per result.
    """
    return lambda function: _add(HookKind.CONVERSION, op, function, priority)


def register_executor(op: str, *, priority: int = 0) -> Callable[[F], F]:
    """Decorator: the function below computes on the host an operation that torch cannot compute.

    It is called with the list of its tensors and the dictionary of its other arguments, and gives a list of tensors.
    """
    return lambda function: _add(HookKind.EXECUTOR, op, function, priority)


def register_pass(point: PassHook | str, *, priority: int = 0) -> Callable[[P], P]:
    """Decorator: a `ModulePass` runs in every compilation, and by its name in `spyre-opt`.

    Args:
        point: ``aten`` (before decomposition), ``aten-decomposed``, ``spyre.loop``, or ``spyre.kernel`` (the schedule
            of kernels, before work is divided).
        priority: among the passes of one point the highest runs first.

    Raises:
        RegistrationError: there is no such point, it is no pass, or its name is taken; both owners are named.
    """
    where = _point(point)

    def add(pass_type: P) -> P:
        name = str(getattr(pass_type, "name", ""))
        given = cast(object, pass_type)
        if not (isinstance(given, type) and issubclass(given, ModulePass)) or not name:
            raise RegistrationError(
                f"a pass is a class, a ModulePass of xDSL with a name; got {pass_type!r}", hint="name = 'my-pass'"
            )
        for other in (r for rs in _REGISTRY.passes.values() for r in rs):
            if other.op == name:
                raise RegistrationError(f"the pass {name} is claimed by both {other.owner} and {_owner(pass_type)}")
        known = _REGISTRY.passes.setdefault(where, [])
        known.append(Registered(name, pass_type, _owner(pass_type), priority))
        known.sort(key=lambda r: -r.priority)
        return pass_type

    return add


def _point(point: PassHook | str) -> PassHook:
    try:
        return PassHook(point)
    except ValueError as error:
        known = ", ".join(p.value for p in PassHook)
        raise RegistrationError(f"there is no point {point!r} for passes", hint=f"the points are {known}") from error


def passes_at(point: PassHook | str) -> list[Registered[Any]]:
    """Plugin passes at a hook, in execution order."""
    return list(_REGISTRY.passes.get(_point(point), ()))


def all_passes() -> list[Registered[Any]]:
    """Plugin passes at all hooks."""
    return [r for point in PassHook for r in passes_at(point)]


@cache
def load_plugins() -> tuple[str, ...]:
    """Call the plugins that the entry point group names, once; return their names.

    Raises:
        RegistrationError: a plugin cannot be loaded; it is named.
    """
    names: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        try:
            point.load()()
        except RegistrationError as error:
            raise RegistrationError(
                f"the plugin {point.name} ({point.value}) cannot be loaded: {error.message}",
                where=error.where,
                hint=error.hint,
            ) from error
        except MISTAKES as error:
            raise RegistrationError(
                f"the plugin {point.name} ({point.value}) cannot be loaded: {error}",
                hint="fix the plugin, or uninstall its package",
            ) from error
        names.append(point.name)
    return tuple(names)
