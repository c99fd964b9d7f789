"""Live nodes of a functional graph, which make the results, and nodes that only rename a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.arguments import runs_unread
from spyre_mlir.frontend.symbolic.sizes import same_shape

_ATEN = torch.ops.aten
_RENAMES = frozenset(
    {
        _ATEN.alias.default,
        _ATEN.detach.default,
        _ATEN.lift_fresh.default,
        _ATEN.lift_fresh_copy.default,
        torch.ops._c10d_functional.wait_tensor.default,  # a collective is complete when its step ends
    }
)


def live_nodes(nodes: Sequence[Node]) -> list[Node]:
    """Return placeholders and the nodes that the output needs, in order: assertions and their operands are dropped.

    What draws random numbers stays: without it, later draws would be other ones. So do collectives: other ranks wait.
    """
    needed: set[Node] = set()
    pending = [n for n in nodes if n.op == "output" or runs_unread(n)]
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            pending += node.all_input_nodes
    return [n for n in nodes if n.op == "placeholder" or (n in needed and n.op != "output")]


def find_aliases(nodes: Sequence[Node]) -> dict[Node, Node]:
    """Map nodes that return an operand unchanged to that operand."""
    calls = [n for n in nodes if n.op == "call_function"]
    renames = {n: cast(Node, n.args[0]) for n in calls if _renames(n)}
    # A write to all of a tensor, in functional form: `copy(old, new)` is `new` in the form of `old`.
    copies = {n: cast(Node, n.args[1]) for n in calls if n.target is _ATEN.copy.default}
    return renames | {n: new for n, new in copies.items() if _same_form(n, new)}


def _same_form(a: Node, b: Node) -> bool:
    first, second = a.meta["val"], b.meta["val"]
    return isinstance(second, torch.Tensor) and first.dtype is second.dtype and same_shape(first, second)


def _renames(node: Node) -> bool:
    if node.target in _RENAMES:
        return True
    if node.target is _ATEN.dropout.default:
        probability, training = node.args[1], node.args[2]
        return not training or cast(float, probability) == 0.0
    if node.target is _ATEN._to_copy.default:
        source = cast(Node, node.args[0])
        same = node.meta["val"].dtype is source.meta["val"].dtype
        return same and node.kwargs.get("memory_format") in (None, torch.preserve_format)
    return False
