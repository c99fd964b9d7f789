"""Runs of graphs of torch: control flow may be given numbers of Python, and regions of autocast may be calls.

Dynamo writes regions of autocast as calls of `_enter_autocast` and `_exit_autocast`. `torch.export` writes these calls
down and runs neither: it takes them for those of `with torch.autocast(…)`, which has begun the region by itself. So
`x.float()` behind a product was checked to read a tensor of another type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from typing import Any, cast

import torch
from torch.fx import GraphModule, Interpreter, Node
from typing_extensions import override

from spyre_mlir.frontend.torch_private import ENTER_AUTOCAST, EXIT_AUTOCAST, HigherOrderOperator

KEPT = ("cond", "while_loop")  # by values
LOOPS = ("scan", "map_impl")  # over slices
_NUMBERS = (bool, int, float)


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
            return type(self)(bound[1] if bound[0] else bound[2]).run(*given)
        return super().call_function(target, (*bound, given), dict(kwargs))


class CapturedCalls(KnownNumbers):
    """Runs a graph of Dynamo with its regions of autocast, none of which outlasts the run.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: GraphModule) -> None:
        super().__init__(graph)
        self._regions = list[ExitStack]()

    @override
    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run one call; the ends of regions come in the order of Python's `with`."""
        if target is ENTER_AUTOCAST:
            device, dtype, enabled, cached = args
            region = ExitStack()
            region.enter_context(torch.autocast(device, dtype, enabled, cached))
            self._regions.append(region)
            return region
        if target is EXIT_AUTOCAST:
            self._regions.pop().close()
            return None
        return super().call_function(target, args, kwargs)

    @override
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run all calls."""
        try:
            return super().run(*args, **kwargs)
        finally:
            while self._regions:
                self._regions.pop().close()


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


__all__ = ["KEPT", "LOOPS", "CapturedCalls", "KnownNumbers"]
