"""New calls in the graph of an exported program, in the place of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from spyre_mlir.frontend.hints import NOTES, hint_at, place_and_hint
from spyre_mlir.frontend.torch_private import FakeTensorMode, Operator


class CallWriter:
    """Writes calls before a node, with its place in the model and its hint.

    Attributes:
        node: the call that the new ones stand for.
    """

    def __init__(self, node: Node) -> None:
        """Starts with the node."""
        self.node = node

    def __call__(self, target: Operator, *args: Any, **kwargs: Any) -> Node:
        """Write one call, and note what its result looks like."""
        with self.node.graph.inserting_before(self.node):
            made = self.node.graph.call_function(target, args, kwargs)
        made.meta = place_and_hint(self.node)
        values, named = cast("tuple[Any, Any]", map_arg((args, kwargs), value_of))
        with self._mode(), torch.no_grad():
            made.meta["val"] = cast(Any, target)(*values, **named)
        return made

    def copied(self, call: Node, values: Mapping[Node, Node]) -> Node:
        """Write a call of another graph, in which torch has noted what its result looks like; a hint of its own stays.

        Args:
            call: the call.
            values: what stands for the nodes that it reads.
        """
        with self.node.graph.inserting_before(self.node):
            made = self.node.graph.node_copy(call, lambda read: values[read])
        hinted = {NOTES: call.meta[NOTES]} if hint_at(call) is not None else {}
        made.meta = place_and_hint(self.node) | hinted | {"val": call.meta["val"]}
        return made

    def _mode(self) -> Any:
        """The mode of the tensors that torch has noted."""
        values = (n.meta.get("val") for n in (self.node, *self.node.all_input_nodes))
        modes = (mode for v in values if (mode := getattr(v, "fake_mode", None)) is not None)
        return next(modes, None) or FakeTensorMode()


def value_of(node: Node) -> Any:
    """Return torch's note on the result of a node: a tensor or a number without a value."""
    return node.meta["val"]


def replace_node(node: Node, made: Node) -> None:
    """Replace a node by another one, which takes over its name if it is new: results are known by their names."""
    name, is_new = node.name, made.graph is node.graph and made.op == "call_function"
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)
    if is_new:
        made.name = name


def replace_results(node: Node, made: list[Node]) -> None:
    """Replace the results of a call by other nodes."""
    for user in list(node.users):
        replace_node(user, made[cast(int, user.args[1])])
    node.graph.erase_node(node)


__all__ = ["CallWriter", "replace_node", "replace_results", "value_of"]
