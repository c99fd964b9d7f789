"""Checks in graphs of Dynamo that hold in eager only for some programs, and that eager does not make.

Dynamo takes for granted that `masked_select` gives no more elements than its input has, and writes a check of it; an
input that broadcasts to the shape of the mask has fewer.
"""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node

_ATEN = torch.ops.aten
_SELECTS = ("masked_select", torch.masked_select, _ATEN.masked_select.default)


def without_false_checks(graph: GraphModule) -> GraphModule:
    """Drop checks of the size of `masked_select` where the input broadcasts, in place."""
    for node in list(graph.graph.nodes):
        if node.op.startswith("call") and node.target in _SELECTS and _broadcasts(node):
            for size in [n for n in node.users if n.target is _ATEN.sym_size.int]:
                for bound in [n for n in size.users if n.target is operator.le]:
                    _drop(bound)
    graph.recompile()
    return graph


def _drop(bound: Node) -> None:
    """Drop the checks of a bound, and it."""
    for check in [n for n in bound.users if n.target is _ATEN._assert_scalar.default]:
        bound.graph.erase_node(check)
    if not bound.users:
        bound.graph.erase_node(bound)


def _broadcasts(node: Node) -> bool:
    given = cast("list[Any]", [*node.args, *node.kwargs.values()])
    if not all(isinstance(part, Node) for part in given):
        return False
    source, mask = (part.meta.get("example_value") for part in given)
    if not isinstance(source, torch.Tensor) or not isinstance(mask, torch.Tensor):
        return False
    shape = cast("tuple[Any, ...]", cast(Any, torch).broadcast_shapes(source.shape, mask.shape))
    return tuple(source.shape) != tuple(shape)
