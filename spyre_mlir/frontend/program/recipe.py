"""Constants of a program that follow from buffers of the model: computations that run when the buffers have values.

Decision: docs/decisions/0121-no-value-decides-an-import.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of

_CPU = torch.device("cpu")
_UNSET = ("aten::empty", "aten::new_empty")


@dataclass(frozen=True)
class Recipe:
    """How a constant follows from buffers of the model.

    Attributes:
        node: whose value it is.
        fixed: values that are known already.
        buffers: the placeholders it reads, with the names of their buffers.
        dtype: what the value is converted to, if it is.
        repeated: per dimension, whether its elements repeat the first one, which stands for all; empty for none.
    """

    node: Node
    fixed: Mapping[Node, object]
    buffers: Mapping[Node, str]
    dtype: torch.dtype | None = None
    repeated: tuple[bool, ...] = ()

    def value(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the constant for the buffers of a model."""
        values = dict(self.fixed) | {node: tensors[name].detach().cpu() for node, name in self.buffers.items()}
        value = computed(self.node, values)
        value = value if self.dtype is None else value.to(self.dtype)
        value = value[tuple(slice(0, 1) if one else slice(None) for one in self.repeated)]
        # Of the constant alone, whatever it is a part of; one element counts as dense under any stride.
        return value.clone(memory_format=torch.contiguous_format)

    def of_type(self, dtype: torch.dtype) -> Recipe:
        """Return the recipe of the same constant in another type."""
        return replace(self, dtype=dtype)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Names of the buffers that it reads."""
        return tuple(dict.fromkeys(self.buffers.values()))

    @property
    def forms(self) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """Shape and type of every buffer that it reads."""
        values = {name: cast(torch.Tensor, node.meta["val"]) for node, name in self.buffers.items()}
        return {name: (tuple(value.shape), value.dtype) for name, value in values.items()}

    @property
    def key(self) -> bytes:
        """Equal for recipes that do the same with the same buffers."""
        known: dict[Node, bytes] = {}
        for node in ordered(self.node, {}):
            text = self.buffers.get(node) or node.name
            if node.op == "call_function":
                text = repr((str(node.target), map_arg((node.args, node.kwargs), lambda n: cast(Any, known[n]))))
            known[node] = sha256(text.encode()).digest()
        return known[self.node] + repr((self.dtype, self.repeated)).encode()


def ordered(node: Node, done: Mapping[Node, object]) -> list[Node]:
    """A node and all it follows from, in an order of computation; what is done is not followed further."""
    order: dict[Node, None] = {}
    pending = [node]
    while pending:
        current = pending[-1]
        missing = [] if current in done else [i for i in current.all_input_nodes if i not in order]
        pending += missing
        if not missing:
            order[pending.pop()] = None
    return list(order)


def computed(node: Node, values: dict[Node, object]) -> torch.Tensor:
    """The value of a node from values of what it follows from; those between are added."""
    for current in ordered(node, values):
        if current not in values:
            values[current] = _run(current, values)
    value = values[node]
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"node {node.name} has {type(value).__name__} as its value, not a tensor")
    return value


def _run(node: Node, values: Mapping[Node, object]) -> object:
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: cast(Any, values[n]))
    if "device" in kwargs:
        kwargs = {**kwargs, "device": _CPU}
    with torch.no_grad():
        value = cast(Operator, node.target)(*args, **kwargs)
    # What nobody set is 0, so that a model gives the same program at every import.
    return value.zero_() if _name(node).startswith(_UNSET) and isinstance(value, torch.Tensor) else value


def _name(node: Node) -> str:
    target = cast(object, node.target)
    return schema_of(cast(Operator, target)).name if isinstance(target, OpOverload) else ""
