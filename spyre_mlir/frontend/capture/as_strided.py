"""Memory accessed by `as_strided`: torch addresses the storage of a tensor, whatever part the tensor shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch.fx import Graph, Node

from spyre_mlir.frontend.arguments import bind, walks
from spyre_mlir.frontend.program.program import Placement
from spyre_mlir.frontend.torch_private import Operator, OpOverload, is_composite, schema_of

_ATEN = torch.ops.aten


@dataclass(frozen=True)
class WalkedMemory:
    """A tensor without gaps, and the strides through it.

    Attributes:
        node: the tensor.
        order: its dimensions as they lie in memory, the one with the longest stride first.
        start: the place of the first element that is walked.
    """

    node: Node
    order: tuple[int, ...]
    start: int

    @property
    def in_order(self) -> bool:
        """Return whether the tensor's elements in row-major order are the memory."""
        return self.order == tuple(range(len(self.order)))

    @property
    def back(self) -> tuple[int, ...]:
        """The permutation that undoes the order."""
        return tuple(self.order.index(d) for d in range(len(self.order)))


def placed(graph: Graph) -> dict[Node, Placement]:
    """Return the inputs of a graph whose strides matter: those accessed by strides, and those that give them form.

    Elementwise operations give their results the strides of their operands, so the inputs of these count too.
    """
    found: dict[Node, Placement] = {}
    for walk in graph.nodes:
        if not walks(walk):
            continue
        bound = bind(walk)
        absolute = bound["storage_offset"].value is not None
        pending, seen = [cast(Node, bound["self"].value)], set[Node]()  # what a scatter writes may lie anyhow
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            pending += node.all_input_nodes
            if node.op == "placeholder" and (absolute or node not in found):
                found[node] = Placement.of(cast(torch.Tensor, node.meta["val"]), absolute=absolute)
    return found


def walked(node: Node) -> WalkedMemory | None:
    """Return the memory that a node accesses by strides; None if no tensor of the graph holds all of it.

    A view that leaves elements out does not hold them, the tensor it is a view of may.
    """
    bound = {name: b.value for name, b in bind(node).items()}
    source = cast(Node, bound["self"])
    size, stride = cast("Sequence[int]", bound["size"]), cast("Sequence[int]", bound["stride"])
    offset = cast("int | None", bound["storage_offset"])
    start = source.meta["val"].storage_offset() if offset is None else offset
    reach = 0 if 0 in size else 1 + sum((e - 1) * s for e, s in zip(size, stride, strict=True))
    holder: Node | None = source
    while holder is not None:
        if (memory := _holding(holder, start, reach)) is not None:
            return memory
        # The result of a scatter has the form of its operand: what is left out there cannot be written.
        holder = None if node.target is _ATEN.as_strided_scatter.default else _viewed(holder)
    return None


def _holding(node: Node, start: int, reach: int) -> WalkedMemory | None:
    """A node as the memory of so many places, if it has no gaps and holds them all."""
    value = cast(torch.Tensor, node.meta["val"])
    strides = value.stride()
    order = tuple(sorted(range(value.dim()), key=lambda d: (-strides[d], d)))
    if value.numel() and not value.permute(order).is_contiguous():
        return None
    if value.is_contiguous():
        order = tuple(range(value.dim()))  # dimensions of one element have any stride
    first = start - int(value.storage_offset())
    return WalkedMemory(node, order, first) if first >= 0 and first + reach <= value.numel() else None


def _viewed(node: Node) -> Node | None:
    """The tensor that a node is a view of."""
    target = cast(object, node.target)
    if not isinstance(target, OpOverload) or not node.args or not isinstance(node.args[0], Node):
        return None
    called = cast(Operator, target)
    first = schema_of(called).arguments[0].alias_info
    return None if first is None or first.is_write or is_composite(called) else node.args[0]
