"""Control flow that the program keeps: the graphs of `torch.cond`, `while_loop` and loops, and what they are given."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, cast

from torch.fx import Graph, GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.graph_runs import KEPT, LOOPS
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import HigherOrderOperator, Operator, OpOverload, schema_of


def is_kept(node: Node) -> bool:
    """Return whether a node is control flow by values, which the program keeps."""
    return _is_called(node, KEPT)


def is_loop(node: Node) -> bool:
    """Return whether a node is a loop over slices."""
    return _is_called(node, LOOPS)


def calls_graphs(node: Node) -> bool:
    """Return whether a node is control flow of either kind."""
    return is_kept(node) or is_loop(node)


def _is_called(node: Node, names: Sequence[str]) -> bool:
    target: object = node.target
    return node.op == "call_function" and isinstance(target, HigherOrderOperator) and target.name() in names


def graphs_of(node: Node) -> tuple[tuple[str, GraphModule], tuple[str, GraphModule]]:
    """Return the two graphs of control flow by values, with their names: branches, or condition and body."""
    first = 1 if predicate_of(node) is not None else 0
    one, other = (_graph(node, cast(Node, part)) for part in node.args[first : first + 2])
    return one, other


def body_of(loop: Node) -> tuple[str, GraphModule]:
    """Return the graph of a loop over slices, with its name."""
    return _graph(loop, cast(Node, loop.args[0]))


def called_graphs(node: Node) -> Sequence[tuple[str, GraphModule]]:
    """Return the graphs of control flow of either kind, with their names."""
    return [body_of(node)] if is_loop(node) else graphs_of(node)


def given_to_loop(loop: Node) -> tuple[list[Any], list[Node], list[Any]]:
    """Return what a loop over slices carries, what it slices, and what all bodies are given besides."""
    lists = [list(cast("Sequence[Any]", part)) for part in loop.args[1:]]
    return (lists[0], lists[1], lists[2]) if len(lists) == 3 else ([], lists[0], lists[1])


def _graph(node: Node, part: Node) -> tuple[str, GraphModule]:
    name = str(part.target)
    return name, cast(GraphModule, getattr(node.graph.owning_module, name))


def predicate_of(node: Node) -> Any:
    """Return what decides between branches; None for a loop, whose condition is a graph."""
    return node.args[0] if cast(HigherOrderOperator, node.target).name() == "cond" else None


def operands_of(node: Node) -> tuple[Node | None, list[Node]]:
    """Return the predicate, if there is one, and the operands of the graphs."""
    if is_loop(node):
        return None, [n for part in given_to_loop(node) for n in part]
    predicate = predicate_of(node)
    lists = node.args[3:] if predicate is not None else node.args[2:]
    return predicate, [n for part in lists for n in cast("tuple[Node, ...]", part)]


def set_operands(node: Node, operands: Iterable[Any]) -> None:
    """Give the graphs something else, in the order of `operands_of`."""
    queue = iter(operands)
    first = 1 if is_loop(node) else 2 if predicate_of(node) is None else 3
    lists = (tuple(next(queue) for _ in cast("Sequence[Any]", part)) for part in node.args[first:])
    node.args = (*node.args[:first], *lists)


def without_operands(node: Node, places: Container[int]) -> None:
    """Take operands from control flow, by their places in the order of `operands_of`."""
    numbers, first = count(), 1 if is_loop(node) else 2 if predicate_of(node) is None else 3
    lists = (cast("Sequence[Any]", part) for part in node.args[first:])
    kept = tuple(tuple(n for n in part if next(numbers) not in places) for part in lists)
    node.args = (*node.args[:first], *kept)


def nodes_within(node: Node) -> Iterator[Node]:
    """Return the nodes of the graphs of such a node."""
    for _, module in called_graphs(node):
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
    "body_of",
    "called_graphs",
    "calls_graphs",
    "check_writes",
    "given_to_loop",
    "graphs_of",
    "is_kept",
    "is_loop",
    "nodes_within",
    "operands_of",
    "predicate_of",
    "set_operands",
    "without_operands",
]
