"""Operators of others that write to their arguments, as of `torch.library.custom_op`: steps of the host on copies.

Torch's own operators have forms that write to nothing. Others would be calls of graphs here, which have no form.

Decision: docs/decisions/0215-operators-that-write-run-on-copies.md
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import getitem
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.call_writer import CallWriter, replace_node, replace_results
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import graphs_of
from spyre_mlir.frontend.capture.unsupported import STRANGE, UnsupportedNode, is_strange_collective, op_name, refuse
from spyre_mlir.frontend.copied_calls import written
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.spelled_calls import RealAt, spelled
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of, storage_identity

_OF_TORCH = frozenset({"aten", "prim", "prims"})  # with forms that write to nothing
_COPY = torch.ops.aten.copy_.default


def explicit_writes(exported: ExportedProgram) -> ExportedProgram:
    """Return a program in which copies are written back behind such calls; the program given stays as it is.

    Raises:
        UnsupportedError: a call is a collective, which the host does not make by itself; or returns numbers; or is
            given what has no literal, such as sizes that are symbols; or a tensor that it writes to, and a view of it.
    """
    calls = [n for module in graphs_of(exported.graph_module) for n in module.graph.nodes if _writes(n)]
    if not calls:
        return exported
    refuse(
        [UnsupportedNode(op_name(n), STRANGE[0], place_of(n), STRANGE[1]) for n in calls if is_strange_collective(n)]
    )
    changed = with_own_graph(exported)
    for module in graphs_of(changed.graph_module):
        for node in filter(_writes, list(module.graph.nodes)):
            _write_back(node)
        module.recompile()
    return changed


def _writes(node: Node) -> bool:
    target: Any = node.target
    return (
        node.op == "call_function"
        and isinstance(target, OpOverload)
        and target.namespace not in _OF_TORCH
        and schema_of(cast(Operator, target)).is_mutable
    )


def _write_back(node: Node) -> None:
    """Put a call on copies in the place of a call, and writes of what it has written behind it."""
    write, target, tensors = CallWriter(node), cast(Operator, node.target), list[Node]()
    named = dict(zip((a.name for a in schema_of(target).arguments), node.args, strict=False)) | node.kwargs
    given = {name: value for name, value in named.items() if value is not None}
    arguments = spelled({name: _argument(value, tensors) for name, value in given.items()})
    if not all("Tensor" in str(result.real_type) for result in schema_of(target).returns):
        raise UnsupportedError(
            f"{target} writes to its arguments, and returns numbers",
            where=place_of(node),
            hint="return them as tensors",
        )
    if arguments is None:
        raise UnsupportedError(
            f"{target} writes to its arguments, and is given more than tensors, text, types and known numbers",
            where=place_of(node),
            hint="give it sizes as tensors, or compile without dynamic_shapes: each size then has its own program",
        )
    _check_apart(node, given, tensors)
    made = write(HOST.on_copies.default, tensors, str(target), arguments)
    parts = [write(cast(Operator, getitem), made, number) for number in range(len(made.meta["val"]))]
    back = list(written(target, given))
    results, copies = parts[: len(parts) - len(back)], parts[len(parts) - len(back) :]
    for tensor, copy in zip(back, copies, strict=True):
        write(_COPY, tensor, copy)
    if isinstance(node.meta.get("val"), torch.Tensor):
        replace_node(node, results[0])
    else:
        replace_results(node, results)


def _argument(value: Any, tensors: list[Node]) -> Any:
    """An argument, whose tensors are added to those of the call."""
    if isinstance(value, (list, tuple)):
        return [_argument(item, tensors) for item in cast("list[Any]", value)]
    if isinstance(value, Node) and isinstance(value.meta["val"], torch.Tensor):
        if value not in tensors:
            tensors.append(value)
        return RealAt(tensors.index(value))
    return value


def _check_apart(node: Node, given: Mapping[str, Any], tensors: list[Node]) -> None:
    """Raises UnsupportedError if a tensor that is written shares memory with another: copies do not."""
    target = cast(Operator, node.target)
    changed = {storage_identity(tensor.meta["val"]) for tensor in written(target, given)}
    places = [storage_identity(tensor.meta["val"]) for tensor in tensors]
    if any(places.count(place) > 1 for place in changed):
        raise UnsupportedError(
            f"{target} writes to a tensor, and is given a view of it as well",
            where=place_of(node),
            hint="give it a clone of the view",
        )


__all__ = ["explicit_writes"]
