"""All that a plugin calls: functions for operations, of `spyre_mlir.ops.registry`, passes, passes on graphs.

A plugin calls these functions, or names a function that does under the entry point group `spyre_mlir.plugins`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops import registry as functions
from spyre_mlir.ops.call_info import MISTAKES, NodeInfo, OpNode, Registered, TensorMeta
from spyre_mlir.ops.mapping import map_op
from spyre_mlir.ops.registry import (
    HookKind,
    find,
    get_conversion_fn,
    get_execution_fn,
    is_kept_whole,
    keep_whole,
    kept_whole,
    register_decomposition,
    register_executor,
    register_fallback,
    register_lowering,
    register_op,
    registered_ops,
)
from spyre_mlir.plugins import graph_passes, passes
from spyre_mlir.plugins.graph_passes import GraphHook, graph_passes_at, register_graph_pass
from spyre_mlir.plugins.passes import PassHook, all_passes, passes_at, register_pass

GROUP = "spyre_mlir.plugins"


@contextmanager
def isolated() -> Generator[None]:
    """Undo at the end of the block everything registered inside it; for tests and notebooks.

    Plugins that are installed stay.
    """
    load_plugins()
    with functions.isolated(), passes.isolated(), graph_passes.isolated():
        yield


def registrations() -> list[object]:
    """Return everything registered, in an order that does not depend on when."""
    at_points = [(point.value, passes_at(point)) for point in PassHook if passes_at(point)]
    on_graphs = [(point.value, graph_passes_at(point)) for point in GraphHook if graph_passes_at(point)]
    return [*functions.registrations(), *at_points, *on_graphs]


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


__all__ = [
    "GraphHook",
    "HookKind",
    "NodeInfo",
    "OpNode",
    "PassHook",
    "Registered",
    "TensorMeta",
    "all_passes",
    "find",
    "get_conversion_fn",
    "get_execution_fn",
    "graph_passes_at",
    "is_kept_whole",
    "isolated",
    "keep_whole",
    "kept_whole",
    "load_plugins",
    "map_op",
    "passes_at",
    "register_decomposition",
    "register_executor",
    "register_fallback",
    "register_graph_pass",
    "register_lowering",
    "register_op",
    "register_pass",
    "registered_ops",
    "registrations",
]
