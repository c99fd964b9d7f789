"""`x[i]` in bodies and branches, where a tensor stands for the number: reads and writes of one place.

Torch has a view by the number. A place that a tensor says is a copy: every read takes one of its own, and what is
written to a copy is put into the tensor behind the write.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any, cast

import torch
from torch.fx import Graph, Node

from spyre_mlir.frontend.capture.call_writer import CallWriter, value_of
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.symbolic.sizes import known_extent
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of

_ATEN = torch.ops.aten
_SELECT = _ATEN.select.int
# What these write is all of the tensor, whatever was there.
_OVERWRITING = frozenset({_ATEN.fill_.Scalar, _ATEN.fill_.Tensor, _ATEN.zero_.default, _ATEN.copy_.default})


def selected(write: CallWriter, node: Node) -> Node:
    """Write `x[i]` anew, where the number of the call is a tensor; the host checks it, and counts from the end."""
    x, dim, place = cast("tuple[Node, int, Node]", node.args)
    row = write(_ATEN.index_select.default, x, dim, _place(write, x, dim, place))
    return write(_ATEN.squeeze.dim, row, dim)


def put(write: CallWriter, node: Node) -> Node:
    """Write a `select_scatter` anew, where the number of the call is a tensor."""
    x, row, dim, place = cast("tuple[Node, Node, int, Node]", node.args)
    rows = write(_ATEN.unsqueeze.default, row, dim)
    return write(_ATEN.index_copy.default, x, dim, _place(write, x, dim, place), rows)


def _place(write: CallWriter, x: Node, dim: int, place: Node) -> Node:
    return write(_ATEN.view.default, write(HOST.place.default, place, _size(write, x, dim)), [1])


def _size(write: CallWriter, x: Node, dim: int) -> int | Node:
    """A size, as a call if it is a symbol: no graph has symbols among its arguments."""
    known = known_extent(value_of(x).shape[dim])
    return write(_ATEN.sym_size.int, x, dim) if known is None else known


def explicit_writes(graph: Graph, numbers: Container[Node]) -> None:
    """Change a graph in place so that `x[i]` may be a copy: each read has one of its own, each write puts it back.

    Args:
        graph: of control flow.
        numbers: the nodes that are numbers.
    """
    views = [n for n in graph.nodes if n.target is _SELECT and n.args[2] in numbers]
    for view in reversed(views):  # a view of a view first
        if _is_in_memory_that_changes(graph, view):
            _Copies(view).run()


def _is_in_memory_that_changes(graph: Graph, view: Node) -> bool:
    """Whether something is written to the memory of a view."""
    root = _root(view)
    return any(_root(written) is root for node in graph.nodes for written in _written(node))


class _Copies:
    """The reads and writes of a view, and of views of it, each with a copy of the place as it is then.

    Args:
        view: a selection.
    """

    def __init__(self, view: Node) -> None:
        self._view = view

    def run(self) -> None:
        """Rewrite the uses of the views, in order, and erase the views."""
        views = self._views()
        users = {user: None for node in self._view.graph.nodes if node in views for user in node.users}
        for user in [node for node in self._view.graph.nodes if node in users and node not in views]:
            self._copied(user, views)
        for view in reversed(list(views)):
            view.graph.erase_node(view)

    def _views(self) -> dict[Node, None]:
        """The view, views of it, and what calls that write to one of them return, which is the same memory."""
        found = {self._view: None}
        for node in self._view.graph.nodes:
            source = _source(node)
            if source not in found:
                continue
            if any(True for _ in _written(node)):
                node.replace_all_uses_with(source)
            else:
                found[node] = None
        return found

    def _copied(self, user: Node, views: dict[Node, None]) -> None:
        write, copies = CallWriter(user), dict[Node, Node]()
        if user.target in _OVERWRITING and user.args[0] is self._view:
            copies[self._view] = self._empty(write)
        for view in views:
            if view in user.all_input_nodes:
                self._copy(write, view, copies)
        if any(view in views for view in _written(user)):
            made = write.copied(user, {n: copies.get(n, n) for n in user.all_input_nodes})
            x, dim, place = cast("tuple[Node, int, Node]", self._view.args)
            write(_ATEN.copy_.default, x, write(_ATEN.select_scatter.default, x, copies[self._view], dim, place))
            user.replace_all_uses_with(made)
            user.graph.erase_node(user)
        else:
            for view, copy in copies.items():
                user.replace_input_with(view, copy)

    def _empty(self, write: CallWriter) -> Node:
        """A place of which nothing is read."""
        form: torch.Tensor = value_of(self._view)
        read, dim, _ = cast("tuple[Node, int, Node]", self._view.args)
        dims = (d for d in range(form.dim() + 1) if d != dim % (form.dim() + 1))
        return write(_ATEN.empty.memory_format, [_size(write, read, d) for d in dims], dtype=form.dtype)

    def _copy(self, write: CallWriter, view: Node, copies: dict[Node, Node]) -> Node:
        if view not in copies:
            read = {n: n for n in view.all_input_nodes}
            if view is self._view:
                one = write(_ATEN.clone.default, write.copied(view, read))  # so that it counts as no view
            else:
                source = cast(Node, _source(view))
                read[source] = self._copy(write, source, copies)
                one = write.copied(view, read)
            copies[view] = one
        return copies[view]


def _source(node: Node) -> Node | None:
    """The operand in whose memory the result of a call is."""
    for argument, value in _operands(node):
        if argument.alias_info is not None and isinstance(value, Node):
            return value
    return None


def _written(node: Node) -> Iterator[Node]:
    """The operands that a call writes to."""
    for argument, value in _operands(node):
        if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, Node):
            yield value


def _operands(node: Node) -> Sequence[tuple[Any, Any]]:
    target = cast(object, node.target)
    if node.op != "call_function" or not isinstance(target, OpOverload):
        return ()
    arguments = schema_of(cast(Operator, target)).arguments
    given = [*node.args, *(node.kwargs.get(a.name) for a in arguments[len(node.args) :])]
    return list(zip(arguments, given, strict=True))


def _root(node: Node) -> Node:
    """The node whose memory a view is of."""
    while (source := _source(node)) is not None:
        node = source
    return node


__all__ = ["explicit_writes", "put", "selected"]
