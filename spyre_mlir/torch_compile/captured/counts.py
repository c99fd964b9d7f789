"""Integers that a graph takes and returns without a tensor in between: the host computes them, no program sees them.

A cache with a sliding window counts its tokens in a Python number. Dynamo makes it an input of the graph and gives back
the next one; as a part of the program, every count would be another program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import Argument, map_arg

from spyre_mlir.torch_compile.dynamo_private import forget_example

_INTEGERS = (int, torch.SymInt)


@dataclass(frozen=True)
class Counts:
    """A graph without its counts, and what computes these.

    Attributes:
        graph: takes the inputs at `taken`, and gives the results that are no counts.
        taken: places of the inputs that `graph` needs.
        counts: gives the counts among the results, for all inputs; None if there are none.
        places: places of the counts among the results.
    """

    graph: GraphModule
    taken: Sequence[int]
    counts: GraphModule | None = None
    places: Sequence[int] = ()

    @classmethod
    def apart(cls, graph: GraphModule) -> Counts:
        """Take the counts out of a graph, which stays as it is: Dynamo reads its inputs later."""
        inputs = list(graph.graph.find_nodes(op="placeholder"))
        output = next(iter(graph.graph.find_nodes(op="output")))
        results = cast("Sequence[Argument]", output.args[0])
        integers = _integers(graph.graph)
        alone = _alone(graph.graph, integers)
        if not alone:
            return cls(graph, range(len(inputs)))
        places = [place for place, result in enumerate(results) if result in alone]
        counts = _computing([cast(Node, results[place]) for place in places], inputs, integers)
        rest = _without(graph, alone, [r for place, r in enumerate(results) if place not in places])
        return cls(rest, [n for n, node in enumerate(inputs) if node not in alone], counts, places)

    def given(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs of the graph without counts."""
        return [inputs[place] for place in self.taken]

    def completed(self, results: Sequence[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return all results, from those of the graph and all inputs."""
        if self.counts is None:
            return tuple(results)
        numbers = dict(zip(self.places, self.counts(*inputs), strict=True))
        rest = iter(results)
        return tuple(numbers[n] if n in numbers else next(rest) for n in range(len(results) + len(numbers)))


def _integers(graph: Graph) -> set[Node]:
    """The integers that are computed from integers alone."""
    found: set[Node] = set()
    for node in graph.nodes:
        integer = isinstance(node.meta.get("example_value"), _INTEGERS) and node.op in ("placeholder", "call_function")
        if integer and all(source in found for source in node.all_input_nodes):
            found.add(node)
    return found


def _alone(graph: Graph, integers: set[Node]) -> set[Node]:
    """Those of them that reach no tensor."""
    alone: set[Node] = set()
    for node in reversed(list(graph.nodes)):
        if node in integers and all(user.op == "output" or user in alone for user in node.users):
            alone.add(node)
    return alone


def _without(graph: GraphModule, alone: set[Node], results: Sequence[Argument]) -> GraphModule:
    """A copy of a graph without some of its integers, with some of its results."""
    made, copies = Graph(), dict[Node, Node]()
    for node in graph.graph.nodes:
        if node not in alone and node.op != "output":
            copies[node] = made.node_copy(node, copies.__getitem__)
            forget_example(copies[node])  # Dynamo does so with its own nodes
    made.output(map_arg(tuple(results), copies.__getitem__))
    return GraphModule(graph, made)


def _computing(wanted: Sequence[Node], inputs: Sequence[Node], integers: set[Node]) -> GraphModule:
    """A graph of all inputs that gives some of its integers."""
    made, copies = Graph(), dict[Node, Node]()
    for node in inputs:
        copies[node] = made.placeholder(node.name)
    for node in inputs[0].graph.nodes:
        if node in integers and node not in copies:
            copies[node] = made.node_copy(node, copies.__getitem__)
    made.output(tuple(copies[node] for node in wanted))
    return GraphModule(torch.nn.Module(), made)


__all__ = ["Counts"]
