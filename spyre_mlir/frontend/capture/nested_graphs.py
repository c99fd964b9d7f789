"""Graphs within graphs: what runs under ``torch.no_grad()`` stands in a graph of its own, and is read in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from torch.fx import GraphModule, Node

_SET_GRAD = "wrap_with_set_grad_enabled"


@dataclass
class FlatGraph:
    """The nodes of a graph, with those of graphs that only say whether gradients are kept in place of their calls.

    Attributes:
        nodes: in the order in which they run; the last is the output of the outermost graph.
        given: per placeholder of an inner graph, the argument it stands for.
        calls: per output of an inner graph, the call whose results it returns.
    """

    nodes: list[Node] = field(default_factory=list[Node])
    given: dict[Node, Any] = field(default_factory=dict[Node, Any])
    calls: dict[Node, Node] = field(default_factory=dict[Node, Node])

    @classmethod
    def of(cls, module: GraphModule) -> FlatGraph:
        """Return the nodes of a graph module."""
        made = cls()
        made.nodes.extend(made._walk(module))
        return made

    def _walk(self, module: GraphModule) -> Iterator[Node]:
        for node in module.graph.nodes:
            if _is_call(node):
                _, name, *given = cast("tuple[Any, ...]", node.args)
                inner = cast(GraphModule, getattr(module, name.target))
                *_, output = inner.graph.nodes
                self.calls[output] = node
                self.given |= dict(zip((n for n in inner.graph.nodes if n.op == "placeholder"), given, strict=True))
                yield from self._walk(inner)
            elif not (node.op == "get_attr" and all(map(_is_call, node.users))):
                yield node


def _is_call(node: Node) -> bool:
    """Return whether a node calls a graph for which gradients are switched on or off."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") == _SET_GRAD
