"""Passes of plugins on torch's own graph, before the import makes a program of it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops.call_info import Registered
from spyre_mlir.ops.registry import owner_of
from spyre_mlir.plugins.points import AtPoints

P = TypeVar("P", bound=Callable[..., Any])


class GraphHook(Enum):
    """Point at which a plugin's pass sees the `torch.fx.Graph` of a model."""

    EXPORTED = "exported"
    DECOMPOSED = "decomposed"


_PASSES = AtPoints(GraphHook, "passes on a graph")
isolated = _PASSES.isolated


def register_graph_pass(point: GraphHook | str, *, priority: int = 0) -> Callable[[P], P]:
    """Decorator: the function below changes the `torch.fx.Graph` of every model that is imported; it returns nothing.

    Args:
        point: ``exported``, with every operator the model calls, or ``decomposed``, after torch's decompositions, where
            nothing has side effects. torch-spyre has `CustomPrePasses` and `CustomPostPasses` at these points.
        priority: among the passes of one point the highest runs first.

    Raises:
        RegistrationError: there is no such point, or it is no function.
    """
    where = _PASSES.point(point)

    def add(function: P) -> P:
        given: object = function
        if not callable(given):
            raise RegistrationError(
                f"a pass on a graph is a function, got {given!r}", hint="use register_graph_pass as a decorator"
            )
        _PASSES.add(where, Registered(f"graph pass at {where.value}", function, owner_of(function), priority))
        return function

    return add


def graph_passes_at(point: GraphHook | str) -> list[Registered]:
    """Plugin passes on the graph at a point, in execution order."""
    return _PASSES.at(_PASSES.point(point))


__all__ = ["GraphHook", "graph_passes_at", "isolated", "register_graph_pass"]
