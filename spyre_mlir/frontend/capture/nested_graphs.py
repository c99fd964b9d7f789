"""Graphs within graphs, as control flow has them; what runs under ``torch.no_grad()`` is read in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

_SET_GRAD = "wrap_with_set_grad_enabled"


def graphs_of(root: GraphModule) -> list[GraphModule]:
    """Return a graph, and those within it."""
    return [module for module in root.modules() if isinstance(module, GraphModule)]


def copied(graph: Graph, given: Sequence[Any], copy: Callable[[Node, Mapping[Node, Any]], Any]) -> list[Any]:
    """Copy the nodes of a graph in order; return the values of its results.

    Args:
        graph: the graph.
        given: what stands for its arguments.
        copy: makes what stands for a node, of the node and of what stands for those before it.
    """
    values, queue = dict[Node, Any](), iter(given)
    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = next(queue)
        elif node.op == "output":
            return list(cast("Sequence[Any]", map_arg(node.args[0], lambda n: values[n])))
        else:
            values[node] = copy(node, values)
    raise AssertionError("a graph ends with its output")


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
