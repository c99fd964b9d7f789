"""Gathers of weights at places that no call changes, and what follows from them: computed when weights have values.

A table of position biases that is read at known places is a larger tensor without choices. A card would gather it in
every call, and arrange it anew.

Decision: docs/decisions/0170-known-gathers-are-made-at-load.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from spyre_mlir.hw.weight_room import MORE_AT_LEAST, MORE_BYTES

aten = torch.ops.aten
_GATHERS = (
    aten.embedding.default,
    aten.gather.default,
    aten.index.Tensor,
    aten.index_select.default,
    aten.take.default,
)


@dataclass(frozen=True)
class KnownGathers:
    """Values that follow from weights and from nothing that a call can change.

    Attributes:
        weights: the placeholders of weights that no call writes, with their names.
        follows: the nodes that follow from weights, whether they are computed ahead or not.
        made: those of them that are computed ahead of all calls: gathers, and what follows from gathers.
    """

    weights: Mapping[Node, str] = field(default_factory=dict[Node, str])
    follows: frozenset[Node] = frozenset()
    made: frozenset[Node] = frozenset()

    @staticmethod
    def of(
        nodes: Sequence[Node],
        weights: Mapping[Node, str],
        names: Collection[Node],
        folds: Callable[[Node, Collection[Node]], bool],
    ) -> KnownGathers:
        """Find them in a graph.

        Args:
            nodes: the graph, in order.
            weights: the placeholders of weights that no call writes, with their names.
            names: nodes that no call can change, whatever the weights.
            folds: whether torch may compute a node ahead, if it may compute these nodes.
        """
        follows: set[Node] = set()
        gathered: set[Node] = set()
        fixed = {*names, *weights}
        for node in nodes if weights else ():
            if node in fixed or not folds(node, fixed):
                continue
            follows.add(node)
            fixed.add(node)
            if node.target in _GATHERS or any(i in gathered for i in node.all_input_nodes):
                gathered.add(node)
        read = {i for node in nodes for i in node.all_input_nodes if i in weights}
        return KnownGathers(
            weights, frozenset(follows), frozenset(_that_fit(nodes, gathered, read, _first_equals(nodes, fixed)))
        )


def _that_fit(
    nodes: Sequence[Node], gathered: Collection[Node], weights: Iterable[Node], same: Mapping[Node, Node]
) -> set[Node]:
    """The gathered nodes that are left if values which take too much of the card are computed in calls."""
    room = max(MORE_AT_LEAST, MORE_BYTES * sum(_bytes(weight) for weight in weights))
    made, live, kept = set(gathered), set(nodes), set[Node]()
    for node in reversed(nodes):
        if node not in made or all(user in made for user in node.users if user in live or user.op == "output"):
            continue
        taken = 0 if same[node] in kept else _bytes(node)
        if taken > room:
            made.remove(node)
        else:
            kept.add(same[node])
            room -= taken
    return made


def _first_equals(nodes: Iterable[Node], fixed: Collection[Node]) -> dict[Node, Node]:
    """By node that no call changes, the first one that computes the same of the same: all these are one constant."""
    firsts: dict[str, Node] = {}
    same: dict[Node, Node] = {}
    for node in nodes:
        if node in fixed and node.op == "call_function":
            said = map_arg((node.args, node.kwargs), lambda n: same.get(n, n))
            same[node] = firsts.setdefault(repr((str(node.target), said)), node)
    return same


def _bytes(node: Node) -> float:
    """Bytes of the value of a node, repeated elements once; one with several values has no form as a constant."""
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        return float("inf")
    pairs = zip(value.shape, value.stride(), strict=True)
    return prod(extent for extent, stride in pairs if stride) * value.dtype.itemsize


__all__ = ["KnownGathers"]
