"""`keep_float32_in` for functions that Dynamo divides: it hands over one graph after another.

A name that a graph of such a function lacks is a warning there, as a later graph may have it.

Decision: docs/decisions/0077-float32-is-kept-on-request.md
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from torch.fx import GraphModule

from spyre_mlir.errors import AbsentNamesError, frames_of_ours
from spyre_mlir.torch_compile.dynamo_private import ends_in_break

_OPTION = "keep_float32_in"
_divided: set[tuple[str, ...]] = set()


class AbsentNamesWarning(UserWarning):
    """A graph of a divided function lacks a name of `keep_float32_in`."""


def note_break(graph: GraphModule, options: Mapping[str, Any]) -> None:
    """Remember that the graphs with these names are several, if one is that ends where Dynamo divides a function."""
    if options.get(_OPTION) and ends_in_break(graph):
        _divided.add(tuple(options[_OPTION]))


def forget_breaks() -> None:
    """Forget which graphs are several, as Dynamo does when it is reset."""
    _divided.clear()


def without_absent(options: Mapping[str, Any], absent: AbsentNamesError, graph: str) -> dict[str, Any]:
    """Return options in which names that a graph lacks may be absent, and warn of them.

    Args:
        options: of the graph.
        absent: what its compilation found.
        graph: its name in the warning.

    Raises:
        AbsentNamesError: no graph with these names ended in a break, so that this one is all there is.
    """
    names = tuple(options[_OPTION])
    if names not in _divided:
        raise absent
    lacks = " or ".join(f"'{name}'" for name in absent.names)
    warnings.warn(
        f"{_OPTION}: graph {graph}, one of several, has nothing with float32 tensors that is called {lacks}; "
        f"others may, write '{absent.names[0]}?' for a name that not every graph has\n  try: {absent.hint}",
        AbsentNamesWarning,
        stacklevel=frames_of_ours(),
    )
    return {**options, _OPTION: tuple(f"{name}?" if name in absent.names else name for name in names)}
