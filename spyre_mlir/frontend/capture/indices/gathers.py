"""Selections by the number that a tensor holds: by the tensor itself, so that no number has to be read from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram

_READ, _SELECT = torch.ops.aten._local_scalar_dense.default, torch.ops.aten.select.int
_WRITE, _TAKE, _PUT = (
    torch.ops.aten.select_scatter.default,
    torch.ops.aten.index.Tensor,
    torch.ops.aten.index_put.default,
)
_BINDINGS = "unbacked_bindings"


def with_tensor_indices(program: FunctionalProgram) -> FunctionalProgram:
    """Make the selections of a functional program, where a tensor says what is selected, ones by this tensor, in place.

    Args:
        program: in functional form: a selection is a copy, so it may be another operator's.
    """
    graph = program.graph
    for node in list(graph.nodes):
        if node.target is _SELECT and (place := _place(node.args[2])) is not None:
            tensor, dim, _ = cast("tuple[Node, int, Node]", node.args)
            _replace(program, node, _TAKE, (tensor, _indices(tensor, dim, place)))
        elif node.target is _WRITE and len(node.args) == 4 and (place := _place(node.args[3])) is not None:
            tensor, value, dim, _ = cast("tuple[Node, Node, int, Node]", node.args)
            _replace(program, node, _PUT, (tensor, _indices(tensor, dim, place), value))
    for node in list(graph.nodes):
        if node.target is _READ and not node.users:
            graph.erase_node(node)
    return program


def _place(index: object) -> Node | None:
    """The tensor without dimensions that an index was read from."""
    if not isinstance(index, Node) or index.target is not _READ:
        return None
    place = cast(Node, index.args[0])
    return place if place.meta["val"].dim() == 0 else None


def _indices(tensor: Node, dim: int, place: Node) -> list[Node | None]:
    return [*[None] * (dim % tensor.meta["val"].dim()), place]


def _replace(program: FunctionalProgram, node: Node, target: Any, args: tuple[Any, ...]) -> None:
    graph = program.graph
    with graph.inserting_before(node):
        made = graph.call_function(target, args)
    about = cast("Mapping[str, Any]", node.meta)
    made.meta = {key: value for key, value in about.items() if key not in {"val", _BINDINGS}}
    given = map_arg(args, lambda n: n.meta["val"])
    with node.meta["val"].fake_mode, torch.no_grad():
        made.meta["val"] = target(*given)
    node.replace_all_uses_with(made)
    program.graph_signature.replace_all_uses(node.name, made.name)
    graph.erase_node(node)
