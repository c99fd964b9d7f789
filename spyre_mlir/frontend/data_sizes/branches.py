"""Control flow beside sizes that data decides: which of it a part of the program has, and which the host runs whole.

Decision: docs/decisions/0149-programs-are-divided-where-data-decides-sizes.md
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

import torch
from torch.fx import GraphModule, Interpreter, Node
from typing_extensions import override

from spyre_mlir.frontend.arguments import is_random
from spyre_mlir.frontend.capture.control_flow.kept import KEPT, graphs_of, is_kept, nodes_within, predicate_of
from spyre_mlir.frontend.torch_private import HigherOrderOperator, OpOverload, tree_flatten

_NUMBERS = (bool, int, float)


def makes_size(node: Node) -> bool:
    """Return whether only the data says the size or value of a result of a call, or of a call in a branch of it."""
    if is_kept(node):
        return any(map(makes_size, nodes_within(node))) or not _keeps_sizes(node)
    return bool(node.meta.get("unbacked_bindings"))


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
        if not isinstance(target, HigherOrderOperator) or target.name() not in KEPT:
            return super().call_function(target, args, dict(kwargs))
        *before, given = args
        first = 0 if target.name() == "cond" else len(before[-1])  # what a loop carries comes first
        numbers = {first + place: value for place, value in enumerate(given) if type(value) in _NUMBERS}
        # Torch joins what a loop carries to the rest, so both are tuples.
        bound: list[Any] = [_bound(part, numbers) for part in before]
        given = tuple(value for value in given if type(value) not in _NUMBERS)
        if target.name() == "cond" and isinstance(bound[0], bool):
            return KnownNumbers(bound[1] if bound[0] else bound[2]).run(*given)
        return super().call_function(target, (*bound, given), dict(kwargs))


def _bound(part: Any, numbers: Mapping[int, Any]) -> Any:
    """A part of control flow; a graph with numbers in the place of some of its arguments."""
    if not isinstance(part, GraphModule):
        return tuple(cast("list[Any]", part)) if isinstance(part, list) else part
    if not numbers:
        return part
    made = deepcopy(part)
    for place, node in enumerate(made.graph.find_nodes(op="placeholder")):
        if place in numbers:
            node.replace_all_uses_with(numbers[place])
            made.graph.erase_node(node)
    made.recompile()
    return made


__all__ = ["KnownNumbers", "draws", "makes_size"]
