"""Control flow that the program keeps: the graphs of `torch.cond` and `while_loop`, and what they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from torch.fx import Graph, GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import HigherOrderOperator, Operator, OpOverload, schema_of

KEPT = ("cond", "while_loop")


def is_kept(node: Node) -> bool:
    """Return whether a node is control flow that the program keeps."""
    target: object = node.target
    return node.op == "call_function" and isinstance(target, HigherOrderOperator) and target.name() in KEPT


def graphs_of(node: Node) -> tuple[tuple[str, GraphModule], tuple[str, GraphModule]]:
    """Return the two graphs of such a node, with their names: branches, or condition and body."""
    first = 1 if predicate_of(node) is not None else 0
    one, other = (_graph(node, cast(Node, part)) for part in node.args[first : first + 2])
    return one, other


def _graph(node: Node, part: Node) -> tuple[str, GraphModule]:
    name = str(part.target)
    return name, cast(GraphModule, getattr(node.graph.owning_module, name))


def predicate_of(node: Node) -> Any:
    """Return what decides between branches; None for a loop, whose condition is a graph."""
    return node.args[0] if cast(HigherOrderOperator, node.target).name() == "cond" else None


def operands_of(node: Node) -> tuple[Node | None, list[Node]]:
    """Return the predicate and what both graphs are given."""
    predicate = predicate_of(node)
    lists = node.args[3:] if predicate is not None else node.args[2:]
    return predicate, [n for part in lists for n in cast("tuple[Node, ...]", part)]


def set_operands(node: Node, operands: Iterable[Any]) -> None:
    """Give both graphs something else, in the order of `operands_of`."""
    first, queue = 2 if predicate_of(node) is None else 3, iter(operands)
    lists = (tuple(next(queue) for _ in cast("Sequence[Any]", part)) for part in node.args[first:])
    node.args = (*node.args[:first], *lists)


def nodes_within(node: Node) -> Iterator[Node]:
    """Return the nodes of the graphs of such a node."""
    for _, module in graphs_of(node):
        yield from module.graph.nodes


def check_writes(graph: Graph) -> None:
    """Check that no graph of control flow writes to what it is given, for torch cannot make that functional.

    Raises:
        UnsupportedError: one does.
    """
    for node in filter(is_kept, graph.nodes):
        for _, module in graphs_of(node):
            written = _written(module.graph)
            if written is not None:
                reason = f"{str(written.target).removesuffix('.default')} in it writes to what it is given"
                raise UnsupportedError(
                    f"a part of this model cannot be expressed\n  1 x {node.target}: {reason}",
                    where=place_of(node),
                    hint="return the new value, and write it behind the call",
                )
            check_writes(module.graph)


def _written(graph: Graph) -> Node | None:
    """The first node that writes to a placeholder, or to a view of one."""
    reached = set(graph.find_nodes(op="placeholder"))
    for node in graph.nodes:
        target = cast(object, node.target)
        if not isinstance(target, OpOverload):
            continue
        for argument, value in zip(schema_of(cast(Operator, target)).arguments, node.args, strict=False):
            if argument.alias_info is not None and value in reached:
                if argument.alias_info.is_write:
                    return node
                reached.add(node)
    return None


__all__ = [
    "KEPT",
    "check_writes",
    "graphs_of",
    "is_kept",
    "nodes_within",
    "operands_of",
    "predicate_of",
    "set_operands",
]
