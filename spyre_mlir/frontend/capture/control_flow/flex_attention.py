"""`flex_attention` as the operators it stands for: products, a softmax, and the model's functions of every score.

The functions of a score and of a mask are graphs of one position. Torch's own definition maps them over all positions,
so that what they do to position numbers is known at import, and a mask of them is a constant.

Decision: docs/decisions/0166-attention-of-functions-is-written-out.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.call_writer import CallWriter, replace_results, value_of
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import copied, graphs_of
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import HigherOrderOperator, flex_attention_of

_ATEN = torch.ops.aten
_INDEXING = "flat_apply"  # how a graph reads a tensor at position numbers before it is decomposed
_MOST = 64  # elements of a tensor that a function makes of numbers of Python


def write_out_flex_attention(exported: ExportedProgram) -> ExportedProgram:
    """Return a program in which attention with functions of scores is plain operators; the one given stays as it is.

    Raises:
        UnsupportedError: a function of scores makes a large tensor of numbers of Python.
    """
    if next(_attentions(exported.graph_module), None) is None:
        return exported
    changed = with_own_graph(exported)
    for node in list(_attentions(changed.graph_module)):
        replace_results(node, _written(node))
    for module in graphs_of(changed.graph_module):
        for unread in [n for n in module.graph.nodes if n.op == "get_attr" and not n.users]:
            module.graph.erase_node(unread)
        module.recompile()
    return changed


def _attentions(root: GraphModule) -> Iterator[Node]:
    for module in graphs_of(root):
        for node in module.graph.nodes:
            target: object = node.target
            if isinstance(target, HigherOrderOperator) and target.name() == "flex_attention":
                yield node


class _OfOnePosition(Interpreter):
    """A function of a score or mask, on tensors of one position."""

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Reads a tensor by the operator, where torch has a function of its own that only it can differentiate."""
        if isinstance(target, HigherOrderOperator) and target.name() == _INDEXING:
            _function, _structure, _kind, tensor, *indices = args
            return _ATEN.index.Tensor(tensor, indices)
        return super().call_function(target, args, kwargs)


def _written(node: Node) -> list[Node]:
    """Write what a call of attention computes before it; return its three results."""
    module = cast(GraphModule, node.graph.owning_module)
    functions: dict[Node, Callable[..., Any]] = {
        part: _OfOnePosition(cast(GraphModule, getattr(module, str(part.target)))).run
        for part in node.all_input_nodes
        if part.op == "get_attr"
    }
    given = [part for part in node.all_input_nodes if part not in functions]

    def compute(*values: Any) -> Any:
        known = functions | dict(zip(given, values, strict=True))
        args, kwargs = cast(
            "tuple[Any, Any]", map_arg((node.args, dict(node.kwargs)), lambda part: cast(Any, known[part]))
        )
        return flex_attention_of(*args, in_order_of_queries=False, **kwargs)

    examples = [value_of(part) for part in given]
    with torch.no_grad(), value_of(cast(Node, node.args[0])).fake_mode:
        traced = make_fx(compute)(*examples)
    traced.graph.eliminate_dead_code()
    attended, *statistics = copied(traced.graph, given, partial(_copy, CallWriter(node), traced))
    return [_arranged(node, attended), *statistics]


def _copy(write: CallWriter, traced: GraphModule, part: Node, values: Mapping[Node, Node]) -> Node:
    """Copy a call of a traced graph."""
    if part.op == "get_attr":
        return _constant(write, getattr(traced, str(part.target)))
    first = part.args[0] if part.args else None
    if part.target is _ATEN.lift_fresh_copy.default:
        return values[cast(Node, first)]
    if part.target is _ATEN._to_copy.default and not isinstance(first, Node):
        # What torch maps over positions converts numbers of Python as if they were tensors.
        return write(_ATEN.full.default, [], first, dtype=part.meta["val"].dtype)
    return write.copied(part, values)


def _constant(write: CallWriter, value: torch.Tensor) -> Node:
    """Write a tensor that a function makes of numbers of Python."""
    if value.numel() > _MOST:
        raise UnsupportedError(
            f"flex_attention: a function makes a tensor of {value.numel():,} numbers; it may have {_MOST}",
            where=place_of(write.node),
            hint="register the tensor as a buffer of the model",
        )
    numbers = [
        write(_ATEN.full.default, [], number, dtype=value.dtype)
        for number in cast("list[Any]", cast(Any, value.reshape(-1)).tolist())
    ]
    if not value.ndim:
        return numbers[0]
    return write(_ATEN.reshape.default, write(_ATEN.stack.default, numbers), list(value.shape))


def _arranged(node: Node, attended: Node) -> Node:
    """Write a copy in eager's order of memory, which is that of the queries, with the last dimension innermost."""
    query: torch.Tensor = value_of(cast(Node, node.args[0]))
    last = query.ndim - 1
    order = sorted(range(last), key=query.stride, reverse=True)
    if order == list(range(last)):
        return attended
    write = CallWriter(node)
    moved = write(_ATEN.permute.default, attended, [*order, last])
    copied = write(_ATEN.clone.default, moved, memory_format=torch.contiguous_format)
    back = [order.index(dimension) for dimension in range(last)]
    return write(_ATEN.permute.default, copied, [*back, last])
