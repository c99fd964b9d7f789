"""Calls of operators that write or check in graphs that AOTAutograd made: calls of the operators again.

Torch has the first as `auto_functionalized_v2`, of the operator, bases of views, and the places of views in them, and
the second as `with_effects`, of a token and the operator.

Decision: docs/decisions/0215-operators-that-write-run-on-copies.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from torch.fx import Graph, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.effects.checks import ASSERTIONS
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import WITHOUT_WRITES

_WITH_EFFECTS = torch.ops.higher_order.with_effects


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


def without_tokens(graph: Graph) -> None:
    """Make checks that AOTAutograd orders by tokens plain calls again, as of `torch.linalg.inv`; results are tokens."""
    for node in graph.find_nodes(op="call_function", target=_WITH_EFFECTS):
        token, called, *args = node.args
        if called not in ASSERTIONS:
            continue
        with graph.inserting_before(node):
            made = graph.call_function(called, tuple(args), dict(node.kwargs))
        made.meta = {key: value for key, value in node.meta.items() if key != "val"}
        for user in list(node.users):
            user.replace_all_uses_with(cast(Node, token))
            graph.erase_node(user)
        graph.erase_node(node)


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


__all__ = ["call_again", "without_tokens"]
