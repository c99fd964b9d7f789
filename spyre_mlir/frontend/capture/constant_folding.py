"""The part of a graph that no call can change, computed once by torch at import.

A node folds if all it reads are numbers, tensors without elements, constants of the model and unmutated
non-persistent buffers: position ids, causal masks, rotary tables. Parameters and persistent buffers belong to
the weights.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from spyre_mlir.frontend.arguments import is_random, walks
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of

_CPU = torch.device("cpu")
_UNSET = ("aten::empty", "aten::new_empty")


class Folded:
    """The folded nodes of a graph and their values."""

    def __init__(
        self,
        nodes: Iterable[Node],
        leaves: Mapping[Node, torch.Tensor],
        done: Mapping[Node, torch.Tensor] | None = None,
    ) -> None:
        """Finds what folds among nodes.

        Args:
            nodes: in order.
            leaves: the placeholders whose value is known.
            done: those that stand for what was folded before.
        """
        self._values: dict[Node, object] = {**leaves, **(done or {})}
        self._names = {*leaves, *(done or {})}
        nodes = list(nodes)
        empty = {n: v for n in nodes if (v := _without_elements(n)) is not None}
        self._values |= empty
        self._leaves = frozenset(leaves) | {n for n in empty if n.op == "placeholder"}
        for node in nodes:
            if node in empty or (
                node.op == "call_function"
                and _pure(node)
                and all(i in self._names for i in node.all_input_nodes)
                and not (walks(node) and any(i in empty for i in node.all_input_nodes))
            ):
                self._names.add(node)

    def __contains__(self, node: Node) -> bool:
        """Return whether a node is computed at import; placeholders are not."""
        return node in self._names and node not in self._leaves

    def known(self, node: Node) -> bool:
        """Return whether the value of a node is known at import, placeholders included."""
        return node in self._names

    def value(self, node: Node) -> torch.Tensor:
        """Return the value of a folded node, computed at first request."""
        pending = [node]
        while pending:
            current = pending[-1]
            if current in self._values:
                pending.pop()
                continue
            missing = [i for i in current.all_input_nodes if i not in self._values]
            if missing:
                pending += missing
            else:
                self._values[current] = self._run(current)
        value = self._values[node]
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"node {node.name} has {type(value).__name__} as its value, not a tensor")
        return value

    def _run(self, node: Node) -> object:
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: cast(Any, self._values[n]))
        if "device" in kwargs:
            kwargs = {**kwargs, "device": _CPU}
        with torch.no_grad():
            value = cast(Operator, node.target)(*args, **kwargs)
        # What nobody set is 0, so that a model gives the same program at every import.
        return value.zero_() if _name(node).startswith(_UNSET) and isinstance(value, torch.Tensor) else value


def _without_elements(node: Node) -> torch.Tensor | None:
    """The value of a node that has no elements: nothing about it depends on data, but for the memory it lies in."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not any(type(extent) is int and extent == 0 for extent in value.shape):
        return None
    return torch.empty(value.shape, dtype=value.dtype)


def _pure(node: Node) -> bool:
    target = cast(object, node.target)
    if target is operator.getitem:
        return True
    return isinstance(target, OpOverload) and not schema_of(cast(Operator, target)).is_mutable and not is_random(node)


def _name(node: Node) -> str:
    target = cast(object, node.target)
    return schema_of(cast(Operator, target)).name if isinstance(target, OpOverload) else ""


def is_causal_mask(mask: torch.Tensor) -> bool:
    """Return whether a boolean mask keeps exactly the entries on and below the diagonal, in every batch."""
    if mask.dtype is not torch.bool or mask.dim() < 2:
        return False
    causal = torch.ones(mask.shape[-2:], dtype=torch.bool).tril()
    return bool((mask == causal).all())
