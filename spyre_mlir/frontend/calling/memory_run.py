"""Run of a graph without elements that finds where its results lie, and skips what cannot matter for that.

A matrix product makes new memory in the order of its dimensions, whatever its operands are, and a write to a tensor
moves none. So a language model runs from its last product on, beside the writes to its cache, not layer by layer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.fx import GraphModule, Interpreter, Node
from typing_extensions import override

from spyre_mlir.frontend.torch_private import Operator, OpOverload, is_level_change, schema_of

_ATEN = torch.ops.aten
# Their results lie alike for all operands of the same shapes, which torch's kernels and fake ones do not look at.
_FRESH = frozenset(
    (_ATEN.linear.default, _ATEN.mm.default, _ATEN.bmm.default, _ATEN.addmm.default, _ATEN.baddbmm.default)
)
# They write to their first argument, and only the shapes of the others count for where it lies: not so of `set_`.
_WRITING = frozenset(
    (
        _ATEN.copy_.default,
        _ATEN.index_copy_.default,
        _ATEN.index_put_.default,
        _ATEN.add_.Tensor,
        _ATEN.sub_.Tensor,
        _ATEN.mul_.Tensor,
    )
)


def memory_run(graph: GraphModule) -> Callable[..., Sequence[Any]]:
    """Return the function of all placeholders of a graph that gives results without elements in their memory."""
    needed, noted = _demand(graph)
    return _MemoryRun(graph, needed, noted).run


class _MemoryRun(Interpreter):
    """An interpreter of some of the nodes.

    Args:
        graph: what is run.
        needed: nodes that run.
        noted: what stands for the results of nodes that do not run.
    """

    def __init__(self, graph: GraphModule, needed: set[Node], noted: Mapping[Node, torch.Tensor]) -> None:
        super().__init__(graph)
        self._needed, self._noted = needed, noted

    @override
    def run_node(self, n: Node) -> Any:
        """Run a node, if it may matter."""
        if n in self._needed or n.op in ("placeholder", "output"):
            return super().run_node(n)
        form = self._noted.get(n)
        return None if form is None else torch.empty_strided(form.shape, form.stride(), dtype=form.dtype)


def _demand(graph: GraphModule) -> tuple[set[Node], dict[Node, torch.Tensor]]:
    """The nodes that have to run, and those of whose results the form is enough."""
    if any(is_level_change(node.target) for node in graph.graph.nodes):
        # Inside of `vmap` torch notes forms without the dimension that is mapped over.
        return set(graph.graph.nodes), {}
    needed, forms = set[Node](), dict[Node, torch.Tensor]()
    open_ = [node for node in graph.graph.nodes if node.op == "output" or _may_write(node)]
    while open_:
        node = open_.pop()
        if node in needed:
            continue
        if node.target in _FRESH and (form := _noted(node)) is not None:
            forms[node] = form
            continue
        needed.add(node)
        for read in node.all_input_nodes:
            by_form = node.target in _WRITING and read is not node.args[0]
            if by_form and (form := _noted(read)) is not None:
                forms[read] = form
            else:
                open_.append(read)
    return needed, forms


def _may_write(node: Node) -> bool:
    """Return whether a node may write to a tensor: unless torch says that it does not."""
    target: object = node.target
    if node.op in ("placeholder", "get_attr") or target is operator.getitem:
        return False
    return not isinstance(target, OpOverload) or schema_of(cast(Operator, target)).is_mutable


def _noted(node: Node) -> torch.Tensor | None:
    """The result that torch noted while it exported, if it is a tensor on the host of a known size."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu" or value.layout is not torch.strided:
        return None
    return value if all(type(size) is int for size in (*value.shape, *value.stride())) else None


__all__ = ["memory_run"]
