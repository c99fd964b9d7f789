"""Calls of operators that write in graphs that AOTAutograd made, which write to nothing: calls of the operators again.

Torch has them as `auto_functionalized_v2`, of the operator, bases of views, and the places of views in them.

Decision: docs/decisions/0215-operators-that-write-run-on-copies.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from torch.fx import Graph, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import WITHOUT_WRITES


def call_again(graph: Graph) -> None:
    """Let such calls of a graph call the operators, on clones of what these write to, for an export to see them.

    Raises:
        UnsupportedError: a view is found by strides in a tensor that has gaps, which its clone has not.
    """
    for operator, made in WITHOUT_WRITES.items():
        for node in graph.find_nodes(op="call_function", target=operator):
            if "_all_bases" in node.kwargs:
                _check_bases(node)
                node.target = partial(_on_clones, made)
            else:
                node.target = made


def _check_bases(node: Node) -> None:
    by_strides = any(name.startswith("_") and name.endswith("_storage_offset") for name in node.kwargs)
    given = cast("Sequence[object]", node.kwargs["_all_bases"])
    bases: list[torch.Tensor] = [base.meta["val"] for base in given if isinstance(base, Node)]
    if by_strides and any(base.storage_offset() or base.clone().stride() != base.stride() for base in bases):
        raise UnsupportedError(
            f"{node.args[0]} writes to a view of a tensor that has gaps",
            where=place_of(node),
            hint="give it a clone, and write this back with copy_",
        )


def _on_clones(made: Any, operator: Any, *, _all_bases: Sequence[torch.Tensor], **named: Any) -> Any:
    """Make a call on clones of bases; torch's own clones are views, and no view of a view can be written to."""
    bases = [base.clone() for base in _all_bases]
    return made(operator, _only_clone_these_bases=(), _all_bases=bases, **named)


__all__ = ["call_again"]
