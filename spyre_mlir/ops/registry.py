"""Functions that other packages register for operations: decompositions, lowerings, host steps, conversions.

Names of operations may be spelled as torch does in any place, see `ops.operator_names`. All look-ups give lists, the
highest priority first. `spyre_mlir.plugins.registry` has all of this together with passes and plugins.

Decision: docs/decisions/0074-who-computes-a-host-step.md
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, NoReturn, TypeVar, cast

from spyre_mlir.errors import RegistrationError, UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.call_info import Hook, Registered
from spyre_mlir.ops.operator_names import canonical, check_name, exists
from spyre_mlir.ops.table import OpEntry

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


def registered_name(op: object) -> str:
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
    check_callable(op, function)
    name = registered_name(op)
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


def check_callable(op: str, function: object) -> None:
    """Raise RegistrationError unless the object registered for an operation can be called."""
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


def declared(declare: Hook, function: Hook, **facts: Any) -> OpEntry:
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
        check_callable(op, function)
        if ATEN.find(key := registered_name(op)) is None:
            # Its rewrites are those that are registered; the entry's own is asked where none of them wants a call.
            declared(
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
    _REGISTRY.whole[registered_name(op)] = owner


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
