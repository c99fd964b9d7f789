"""Control flow beside sizes that data decides: which of it a part of the program has, and which the host runs whole.

Decision: docs/decisions/0149-programs-are-divided-where-data-decides-sizes.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node
from typing_extensions import override

from spyre_mlir.frontend.arguments import is_random
from spyre_mlir.frontend.capture.control_flow.kept import (
    KEPT,
    LOOPS,
    calls_graphs,
    graphs_of,
    is_kept,
    nodes_within,
    predicate_of,
)
from spyre_mlir.frontend.symbolic.sizes import is_symbolic_node
from spyre_mlir.frontend.torch_private import HigherOrderOperator, OpOverload, free_unbacked_symbols, tree_flatten

_NUMBERS = (bool, int, float)


def makes_size(node: Node) -> bool:
    """Return whether only the data says the size or value of a result of a call, or of a call in a branch of it."""
    if is_kept(node):
        return any(map(makes_size, nodes_within(node))) or not _keeps_sizes(node)
    return bool(node.meta.get("unbacked_bindings")) or _makes_known_size(node)


def _makes_known_size(node: Node) -> bool:
    """Return whether a call makes a size that a call before it has made of the same mask, which torch remembers."""
    target: Any = node.target
    if not isinstance(target, OpOverload) or torch.Tag.dynamic_output_shape not in cast(Any, target).tags:
        return False
    return not _symbols(node) <= {symbol for given in node.all_input_nodes for symbol in _symbols(given)}


def _symbols(node: Node) -> set[object]:
    """The symbols that data decides in the shape of a value."""
    value: Any = node.meta.get("val")
    return set(free_unbacked_symbols(value))


def has_own_sizes(exported: ExportedProgram) -> bool:
    """Return whether parts of a program have to be compiled for the sizes of a call.

    Data decides sizes in it, or it has control flow and symbols.
    """
    nodes = exported.graph.nodes
    if any(map(makes_size, nodes)):
        return True
    return any(map(is_symbolic_node, nodes)) and any(map(calls_graphs, nodes))


def _keeps_sizes(node: Node) -> bool:
    """Return whether both branches give the same sizes, or a body the sizes that it is given.

    Torch gives the results new symbols if there are symbols in them.
    """
    (_, first), (_, second) = graphs_of(node)
    given = second.graph.find_nodes(op="placeholder") if predicate_of(node) is None else _results(first)
    return all(_sizes(a) == _sizes(b) for a, b in zip(given, _results(second), strict=False))


def _results(graph: GraphModule) -> list[Any]:
    (output,) = graph.graph.find_nodes(op="output")
    return list(tree_flatten(output.args[0])[0])


def _sizes(value: object) -> str:
    known = value.meta.get("val") if isinstance(value, Node) else value
    return str(tuple(known.shape)) if isinstance(known, torch.Tensor) else ""


def draws(node: Node) -> bool:
    """Return whether a call draws random numbers, in a branch or by itself."""
    if is_kept(node):
        return any(map(draws, nodes_within(node)))
    return node.op == "call_function" and isinstance(node.target, OpOverload) and is_random(node)


class KnownNumbers(Interpreter):
    """Runs a graph whose control flow may be given numbers of Python, which torch traces in no branch or body.

    Each graph has them as constants. A branch that numbers decide is followed instead of `torch.cond`.
    """

    @override
    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run one call."""
        if not _takes_graphs(target):
            return super().call_function(target, args, dict(kwargs))
        *before, given = args
        numbers = _numbers_at(args)
        # Torch joins what a loop carries to the rest, so both are tuples.
        bound: list[Any] = [_bound(part, numbers) for part in before]
        given = tuple(value for value in given if type(value) not in _NUMBERS)
        if target.name() == "cond" and isinstance(bound[0], bool):
            return KnownNumbers(bound[1] if bound[0] else bound[2]).run(*given)
        return super().call_function(target, (*bound, given), dict(kwargs))


def _takes_graphs(target: object) -> bool:
    return isinstance(target, HigherOrderOperator) and target.name() in (*KEPT, *LOOPS)


def _numbers_at(args: Sequence[Any]) -> dict[int, Any]:
    """The numbers of Python that control flow is given, by their places among the arguments of its graphs."""
    *before, given = args
    lists = (cast("Sequence[Any]", part) for part in before if isinstance(part, (list, tuple)))
    first = sum(map(len, lists))  # what a loop carries, and slices
    return {first + place: value for place, value in enumerate(given) if type(value) in _NUMBERS}


def _bound(part: Any, numbers: Mapping[int, Any]) -> Any:
    """A part of control flow; a graph with numbers in the place of some of its arguments."""
    if not isinstance(part, GraphModule):
        return tuple(cast("list[Any]", part)) if isinstance(part, list) else part
    if not numbers:
        return part
    made = deepcopy(part)
    for place, node in enumerate(made.graph.find_nodes(op="placeholder")):
        if place in numbers:
            _replace(node, numbers[place])
    for node in list(made.graph.nodes):
        if node.op == "call_function" and getattr(node.target, "__module__", "") == "_operator":
            if not node.all_input_nodes:
                _replace(node, node.target(*node.args))
        elif node.op == "call_function" and _takes_graphs(node.target) and (inner := _numbers_at(node.args)):
            _bind_within(made, node, inner)
    made.recompile()
    return made


def _replace(node: Node, number: Any) -> None:
    node.replace_all_uses_with(number)
    node.graph.erase_node(node)


def _bind_within(root: GraphModule, node: Node, numbers: Mapping[int, Any]) -> None:
    """Give the graphs of control flow within a graph their numbers."""
    for part in node.all_input_nodes:
        if part.op == "get_attr" and isinstance(graph := getattr(root, str(part.target)), GraphModule):
            setattr(root, str(part.target), _bound(graph, numbers))
    *before, given = node.args
    kept = tuple(value for value in cast("Sequence[Any]", given) if type(value) not in _NUMBERS)
    node.args = (*before, kept)


__all__ = ["KnownNumbers", "draws", "has_own_sizes", "makes_size"]
