"""Passes of plugins, and the points of the pipeline at which they run."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeVar, cast

from xdsl.passes import ModulePass

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops.call_info import Registered
from spyre_mlir.ops.registry import owner_of
from spyre_mlir.plugins.points import AtPoints

P = TypeVar("P", bound=type[ModulePass])


class PassHook(Enum):
    """Point of the pipeline at which a plugin's pass runs."""

    ATEN = "aten"
    DECOMPOSED = "aten-decomposed"
    LOOP = "spyre.loop"
    SCHEDULE = "spyre.kernel"


_PASSES = AtPoints(PassHook, "passes")
isolated = _PASSES.isolated


def register_pass(point: PassHook | str, *, priority: int = 0) -> Callable[[P], P]:
    """Decorator: a `ModulePass` runs in every compilation, and by its name in `spyre-opt`.

    Args:
        point: ``aten`` (before decomposition), ``aten-decomposed``, ``spyre.loop``, or ``spyre.kernel`` (the schedule
            of kernels, before work is divided).
        priority: among the passes of one point the highest runs first.

    Raises:
        RegistrationError: there is no such point, it is no pass, or its name is taken; both owners are named.
    """
    where = _PASSES.point(point)

    def add(pass_type: P) -> P:
        name = str(getattr(pass_type, "name", ""))
        given = cast(object, pass_type)
        if not (isinstance(given, type) and issubclass(given, ModulePass)) or not name:
            raise RegistrationError(
                f"a pass is a class, a ModulePass of xDSL with a name; got {pass_type!r}", hint="name = 'my-pass'"
            )
        for other in all_passes():
            if other.op == name:
                raise RegistrationError(f"the pass {name} is claimed by both {other.owner} and {owner_of(pass_type)}")
        _PASSES.add(where, Registered(name, pass_type, owner_of(pass_type), priority))
        return pass_type

    return add


def passes_at(point: PassHook | str) -> list[Registered]:
    """Plugin passes at a hook, in execution order."""
    return _PASSES.at(_PASSES.point(point))


def all_passes() -> list[Registered]:
    """Plugin passes at all hooks."""
    return [r for point in PassHook for r in passes_at(point)]
