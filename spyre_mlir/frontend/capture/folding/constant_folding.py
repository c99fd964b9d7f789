"""The part of a graph that no call can change: torch computes it once.

A node folds if it reads nothing but numbers, tensors without elements, constants of the model and unmutated
non-persistent buffers: position ids, causal masks, rotary tables. Parameters and persistent buffers belong to
the weights; a node that follows from these folds if it computes numbers (see `weight_values`).

A value that follows from numbers and constants alone is known at import. One that follows from a buffer or a weight as
well is computed by a recipe once these have values, at import or later. No decision of the import looks at it, so a
model without values gives the same program.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.arguments import checks, exchanges, is_random, walks
from spyre_mlir.frontend.capture.folding.weight_values import WeightValues
from spyre_mlir.frontend.program.recipe import Recipe, computed, ordered
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of


@dataclass(frozen=True)
class Earlier:
    """Nodes that stand for constants of the program that a program is made from.

    Attributes:
        known: nodes whose value was known at its import.
        recipes: nodes whose value follows from buffers and weights.
        computed: the values of those that follow from buffers alone, as far as these have values.
        leaves: tensors that recipes alone read, as far as they are known.
    """

    known: Mapping[Node, torch.Tensor] = field(default_factory=dict[Node, torch.Tensor])
    recipes: Mapping[Node, Recipe] = field(default_factory=dict[Node, Recipe])
    computed: Mapping[Node, torch.Tensor] = field(default_factory=dict[Node, torch.Tensor])
    leaves: Mapping[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])

    def __contains__(self, node: Node) -> bool:
        """Return whether a node is one of them."""
        return node in self.known or node in self.recipes


class Folded:
    """The folded nodes of a graph and their values."""

    def __init__(
        self,
        nodes: Iterable[Node],
        leaves: Mapping[Node, torch.Tensor],
        buffers: Mapping[Node, str] | None = None,
        earlier: Earlier | None = None,
        weights: Mapping[Node, str] | None = None,
    ) -> None:
        """Finds what folds.

        Args:
            nodes: the graph, in order.
            leaves: the placeholders whose value is known.
            buffers: the placeholders of buffers that no call changes, with their names.
            earlier: the placeholders that stand for what was folded before.
            weights: the placeholders of weights that no call changes, with their names.
        """
        self._buffers = dict(buffers or {})
        self._earlier = earlier or Earlier()
        self._values: dict[Node, object] = {**leaves, **self._earlier.known}
        self._names = {*leaves, *self._buffers, *self._earlier.known, *self._earlier.recipes}
        self._by_recipe = {*self._buffers, *self._earlier.recipes}
        nodes = list(nodes)
        empty = {n: v for n in nodes if (v := _without_elements(n)) is not None}
        self._values |= empty
        self._ask_for_refusals(nodes, empty)
        self._leaves = frozenset(n for n in self._names if n not in self._earlier) | {
            n for n in empty if n.op == "placeholder" and n not in self._earlier
        }
        for node in nodes:
            if node in empty or self._folds(node, self._names, empty):
                self._names.add(node)
                if node not in empty and any(i in self._by_recipe for i in node.all_input_nodes):
                    self._by_recipe.add(node)
        self._by_recipe -= set(empty)
        self._of_weights = WeightValues.of(
            nodes, weights or {}, self._names, lambda node, fixed: self._folds(node, fixed, fixed)
        )
        self._names |= self._of_weights.made
        self._by_recipe |= self._of_weights.made

    def _ask_for_refusals(self, nodes: Sequence[Node], empty: Collection[Node]) -> None:
        """Runs what has several results, none with elements: `max` of no row is traced, and refused in a call.

        Raises:
            ImportProgramError: torch refuses the call.
        """
        for node in nodes:
            read, parts = node.all_input_nodes, list(node.users)
            if node not in empty and _pure(node) and read and parts and all(n in empty for n in (*read, *parts)):
                computed(parts[0], {n: v for n, v in self._values.items() if n not in parts})

    def _folds(self, node: Node, fixed: Collection[Node], empty: Collection[Node]) -> bool:
        return (
            node.op == "call_function"
            and _pure(node)
            and all(i in fixed for i in node.all_input_nodes)
            # `as_strided` and its like read memory as it lies, which a value does not record.
            and not (walks(node) and any(i in empty or i in self._by_recipe for i in node.all_input_nodes))
        )

    def __contains__(self, node: Node) -> bool:
        """Return whether a node is computed ahead of all calls; placeholders are not."""
        return node in self._names and node not in self._leaves

    def known(self, node: Node) -> bool:
        """Return whether the value of a node is known at import, placeholders included."""
        return node in self._names and node not in self._by_recipe

    def by_recipe(self, node: Node) -> bool:
        """Return whether the value of a node follows from buffers, their placeholders included, or from weights."""
        return node in self._by_recipe

    def recipe(self, node: Node) -> Recipe:
        """Return how the value of such a node is computed."""
        later = self._by_recipe | self._of_weights.follows | self._of_weights.weights.keys()
        needed = [n for n in ordered(node, self._values) if n in later or n in self._values]
        fixed = {n: self._values[n] for n in needed if n in self._values}
        fixed |= {i: self.value(i) for n in needed for i in n.all_input_nodes if self.known(i)}
        weights = {n: self._of_weights.weights[n] for n in needed if n in self._of_weights.weights}
        return Recipe(
            node,
            fixed,
            {n: self._buffers[n] for n in needed if n in self._buffers} | weights,
            earlier={n: self._earlier.recipes[n] for n in needed if n in self._earlier.recipes},
            weights=frozenset(weights.values()),
        )

    def value(self, node: Node) -> torch.Tensor:
        """Return the value of a known node, computed at first request."""
        return computed(node, self._values)


def _without_elements(node: Node) -> torch.Tensor | None:
    """The value of a node that has no elements: nothing about it depends on data, but for the memory it lies in."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or any(isinstance(extent, torch.SymInt) for extent in value.shape):
        return None
    if value.numel() > 0:
        return None
    return torch.empty(value.shape, dtype=value.dtype)


def _pure(node: Node) -> bool:
    target = cast(object, node.target)
    if target is operator.getitem:
        return True
    if not isinstance(target, OpOverload) or is_random(node) or exchanges(node) or checks(node):
        return False
    return not schema_of(cast(Operator, target)).is_mutable


def is_causal_mask(mask: torch.Tensor) -> bool:
    """Return whether a boolean mask keeps exactly the entries on and below the diagonal, in every batch."""
    if mask.dtype is not torch.bool or mask.dim() < 2:
        return False
    causal = torch.ones(mask.shape[-2:], dtype=torch.bool).tril()
    return bool((mask == causal).all())
