"""Values that follow from weights and from nothing that a call can change: computed when weights have values.

Norms of a weight, biases gathered from a table at known places, two weights side by side: a card would compute them
again in every call. An op that only moves the elements of one weight is left to the program, as the host sends a
weight in the layout that its reader wants.

Decision: docs/decisions/0179-values-of-weights-alone-are-computed-at-load.md
Decision: docs/decisions/0170-known-gathers-are-made-at-load.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of
from spyre_mlir.hw.weight_room import MORE_AT_LEAST, MORE_BYTES

aten = torch.ops.aten
_GATHERS = (
    aten.embedding.default,
    aten.gather.default,
    aten.index.Tensor,
    aten.index_select.default,
    aten.take.default,
)
# Ops besides views that only give the elements of a weight another place or type.
_MOVES = (
    aten._to_copy.default,
    aten._unsafe_view.default,
    aten.clone.default,
    aten.constant_pad_nd.default,
    aten.repeat.default,
)
# A value of a weight of few bits is made at load if it has at most one element for so many of the weight.
_SUMMED = 8


@dataclass(frozen=True)
class WeightValues:
    """Values that follow from weights and from nothing that a call can change.

    Attributes:
        weights: the placeholders of weights that no call writes, with their names.
        follows: the nodes that follow from weights, whether they are computed ahead or not.
        made: those of them that are computed ahead of all calls.
    """

    weights: Mapping[Node, str] = field(default_factory=dict[Node, str])
    follows: frozenset[Node] = frozenset()
    made: frozenset[Node] = frozenset()

    @staticmethod
    def of(
        nodes: Sequence[Node],
        weights: Mapping[Node, str],
        constants: Collection[Node],
        folds: Callable[[Node, Collection[Node]], bool],
    ) -> WeightValues:
        """Find them in a graph.

        Args:
            nodes: the graph, in order.
            weights: the placeholders of weights that no call writes, with their names.
            constants: nodes that no call can change, whatever the weights.
            folds: whether torch may compute a node at load if the nodes in the collection are known then.
        """
        sources: dict[Node, frozenset[Node]] = {}
        computed: set[Node] = set()
        gathered: set[Node] = set()
        fixed = {*constants, *weights}
        for node in nodes if weights else ():
            if node in fixed or not folds(node, fixed):
                continue
            fixed.add(node)
            read = node.all_input_nodes
            sources[node] = frozenset(w for i in read for w in (sources.get(i, ()) if i not in weights else (i,)))
            if node.target in _GATHERS or any(i in gathered for i in read):
                gathered.add(node)
            moves = node.target is aten.expand.default  # readers repeat what lies there once
            if not moves and (node in gathered or not _only_moves(node) or any(i in computed for i in read)):
                computed.add(node)
        possible = {n for n in computed if n in gathered or not any(_unpacks(w, n) for w in sources[n])}
        made = _Room(nodes, weights, sources, _first_equals(nodes, fixed)).that_fit(possible)
        return WeightValues(weights, frozenset(sources), frozenset(made))


def _only_moves(node: Node) -> bool:
    """Whether a node is a view, a copy, a conversion, a repetition or a padding, which compute no new numbers."""
    target = cast(object, node.target)
    if not isinstance(target, OpOverload):
        return True  # one of several results
    returns = schema_of(cast(Operator, target)).returns
    return target in _MOVES or any(r.alias_info is not None for r in returns)


def _unpacks(weight: Node, node: Node) -> bool:
    """Whether a value would store a weight of few bits in a wider type: the card unpacks those in each call."""
    source, value = cast(torch.Tensor, weight.meta["val"]), node.meta["val"]
    wide = source.dtype is torch.bool or source.is_complex()
    if wide or (source.is_floating_point() and source.dtype.itemsize > 1) or not isinstance(value, torch.Tensor):
        return False
    return value.numel() * _SUMMED > source.numel()


class _Room:
    """Room of the card for values that are computed at load."""

    def __init__(
        self,
        nodes: Sequence[Node],
        weights: Collection[Node],
        sources: Mapping[Node, frozenset[Node]],
        same: Mapping[Node, Node],
    ) -> None:
        """Takes a graph.

        Args:
            nodes: the graph, in order.
            weights: the placeholders of weights that no call writes.
            sources: the nodes that follow from weights, with these.
            same: by node, the first one that computes the same.
        """
        self._nodes, self._sources, self._same = nodes, sources, same
        live = set(nodes)
        self._users = {n: [u for u in n.users if u in live or u.op == "output"] for n in (*sources, *weights)}
        self._weights = [w for w in weights if self._users[w]]

    def that_fit(self, possible: Collection[Node]) -> set[Node]:
        """Return the nodes whose values fit; the rest is computed in calls.

        A value may take as many bytes as the weights that it replaces. All bytes beyond these have to fit the room
        together. If a value does not fit, no value of its kind is made, so that equal layers stay equal.
        """
        refused: set[object] = set()
        while True:
            made = {n for n in possible if _kind(n) not in refused}
            beyond = self._first_beyond(made)
            if beyond is None:
                return made
            refused.add(_kind(beyond))

    def _first_beyond(self, made: Collection[Node]) -> Node | None:
        """The last node whose value does not fit beside those behind it; None if all fit."""
        room = max(MORE_AT_LEAST, MORE_BYTES * sum(map(_bytes, self._weights)))
        freed, kept = self._freed(made), set[Node]()
        for node in reversed(self._nodes):
            if node not in made or all(user in made for user in self._users[node]) or self._same[node] in kept:
                continue
            kept.add(self._same[node])
            taken = _bytes(node)
            for weight in self._sources[node]:
                replaced = min(freed.get(weight, 0), taken)
                if replaced:
                    freed[weight] -= replaced
                    taken -= replaced
            if taken > room:
                return node
            room -= taken
        return None

    def _freed(self, made: Collection[Node]) -> dict[Node, float]:
        """Bytes of the weights that no call reads if these nodes are made ahead."""
        ahead = set(made)
        for node in reversed(self._nodes):
            if node in self._sources and all(user in ahead for user in self._users[node]):
                ahead.add(node)
        return {w: _bytes(w) for w in self._weights if all(user in ahead for user in self._users[w])}


def _kind(node: Node) -> object:
    """The operator, shape and type of a node, which are the same in equal layers."""
    value = node.meta["val"]
    form = (value.shape, value.dtype) if isinstance(value, torch.Tensor) else None
    return str(node.target), form


def _first_equals(nodes: Iterable[Node], fixed: Collection[Node]) -> dict[Node, Node]:
    """By node that no call changes, the first node with the same operator and arguments: they share one constant."""
    firsts: dict[str, Node] = {}
    same: dict[Node, Node] = {}
    for node in nodes:
        if node in fixed and node.op == "call_function":
            said = map_arg((node.args, node.kwargs), lambda n: same.get(n, n))
            same[node] = firsts.setdefault(repr((str(node.target), said)), node)
    return same


def _bytes(node: Node) -> float:
    """Bytes of the value of a node, expanded elements counted once; infinite for a node with several results."""
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        return float("inf")
    pairs = zip(value.shape, value.stride(), strict=True)
    return prod(extent for extent, stride in pairs if stride) * value.dtype.itemsize


__all__ = ["WeightValues"]
