"""State that a call leaves in Python objects for the next one: counters, truths, and tensors made from its inputs.

A program has no state but its buffers, so that each of its calls would be the first. The model is therefore traced
once more from the state that the first trace leaves, with zeros in the places of tensors. If that gives another
program, the state is part of the model. A table that depends on no input is not: it has the same numbers each time.

Decision: docs/decisions/0207-state-of-the-next-call.md
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from spyre_mlir.frontend.capture.tracing.python.state import Held, held_state, restore
from spyre_mlir.frontend.torch_private import holders, is_fake, traced_node, tree_flatten, tree_map

# What a program has of such values is text in its graph, so that a change of them is seen there.
_PLAIN = (int, float, str, bool, type(None))


class CallState:
    """The Python objects of a model before a call, and after it."""

    def __init__(self, model: torch.nn.Module) -> None:
        """Takes what there is before the call."""
        hooks = {id(held) for module in model.modules() for name, held in vars(module).items() if "_hooks" in name}
        state = [(held, held.copy()) for held in held_state(model)]
        self._before = [(held, values) for held, values in state if id(held) not in hooks]
        self._hooks = [(held, values) for held, values in state if id(held) in hooks]
        self._weights = {id(held) for held in holders(model)}
        self._after: list[tuple[Held, Held]] = []
        self._changed: set[str] = set()

    def look(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Take what a call has changed, before its trace ends.

        Nothing, if it has made a table: values beside it may say that the table is there.
        """
        self._after, self._changed = [], set()
        inputs = {traced_node(leaf) for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)}
        new = [(name, tensor) for held, values in self._before for name, tensor in self._new_tensors(held, values)]
        if all(_depends(tensor, inputs) for _, tensor in new):
            self._after = [(h, v if id(h) in self._weights else h.copy()) for h, v in self._before]
            self._changed = {name for name, _ in new}

    def changed(self) -> list[str]:
        """Return the names of attributes and keys that have other values after the call."""
        pairs = [(left, values) for (_, left), (_, values) in zip(self._after, self._before, strict=False)]
        return sorted(self._changed.union(*(_differing(left, values) for left, values in pairs)))

    @contextmanager
    def left(self) -> Generator[None]:
        """Puts the model into the state that the call has left, and back: hooks that the call has added end there."""
        try:
            for held, values in self._after:
                restore(held, values if id(held) in self._weights else _without_traces(values))
            yield
        finally:
            for held, values in (*self._before, *self._hooks):
                restore(held, values)

    def _new_tensors(self, held: Held, before: Held) -> Iterator[tuple[str, torch.Tensor]]:
        for name, value in _entries(held):
            old = dict(_entries(before)).get(name)
            if value is old or id(value) in self._weights or (id(held) in self._weights and old is not None):
                continue
            yield from ((name, leaf) for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor))


def is_same(one: ExportedProgram, other: ExportedProgram) -> bool:
    """Return whether two programs have one graph, and constants of the same values."""
    codes = [[m.code for m in p.graph_module.modules() if isinstance(m, torch.fx.GraphModule)] for p in (one, other)]
    tensors = [{k: v for k, v in p.constants.items() if isinstance(v, torch.Tensor)} for p in (one, other)]
    if codes[0] != codes[1] or tensors[0].keys() != tensors[1].keys():
        return False
    return all(is_fake(v) or is_fake(tensors[1][k]) or v.equal(tensors[1][k]) for k, v in tensors[0].items())


def _entries(held: Held) -> list[tuple[str, object]]:
    return [(str(k), v) for k, v in held.items()] if isinstance(held, dict) else [("a list", v) for v in held]


def _depends(tensor: torch.Tensor, inputs: set[torch.fx.Node | None]) -> bool:
    """Whether a traced tensor is computed from one of these nodes."""
    seen: set[torch.fx.Node] = set()
    waiting = [traced_node(tensor)]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if node in inputs:
            return True
        seen.add(node)
        waiting.extend(node.all_input_nodes)
    return False


def _without_traces(held: Held) -> Held:
    def untraced(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor) or not is_fake(leaf):
            return leaf
        return torch.zeros(leaf.shape, dtype=leaf.dtype)

    if isinstance(held, list):
        return [tree_map(untraced, value) for value in held]
    # Dictionaries and lists inside are there by themselves.
    return {k: v if isinstance(v, dict | list) else tree_map(untraced, v) for k, v in held.items()}


def _differing(left: Held, before: Held) -> Iterator[str]:
    """The names of numbers, truths and texts that differ."""
    if isinstance(left, list):
        if _is_plain(left) and left != before:
            yield "a list"
        return
    assert isinstance(before, dict)
    for name, value in left.items():
        if _is_plain(value) and (name not in before or (before[name] is not value and before[name] != value)):
            yield str(name)


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(part) for part in cast("list[object] | tuple[object, ...]", value))
    return type(value) in _PLAIN
