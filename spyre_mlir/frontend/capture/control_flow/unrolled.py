"""Loops over the slices of tensors, `scan` and `map`: the body is written once per slice.

The number of slices is known, so the program has no loop to decide about: what a body carries to the next stays on the
device, and `outline-regions` may make equal bodies one function again.

Decision: docs/decisions/0142-loops-over-slices-are-unrolled.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.call_writer import CallWriter, replace_results, value_of
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import copied
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.symbolic.sizes import STATIC
from spyre_mlir.frontend.torch_private import HigherOrderOperator

_ATEN = torch.ops.aten
LOOPS = ("scan", "map_impl")
MOST_CALLS = 8192  # of all bodies together; each is lowered unless it equals others


def unroll_loops(exported: ExportedProgram, *, symbolic: bool = False) -> ExportedProgram:
    """Return a program in which no loop over slices is left at the top; the program given stays as it is.

    Args:
        exported: the program.
        symbolic: whether loops over a number of slices that is a symbol stay.

    Raises:
        UnsupportedError: the number of slices is a symbol, or the bodies are too many calls.
    """
    if not any(_is_wanted(node, symbolic) for node in exported.graph.nodes):
        return exported
    changed = with_own_graph(exported)
    unroll = _Unroll(changed.graph_module)
    while (loop := next((n for n in changed.graph.nodes if _is_wanted(n, symbolic)), None)) is not None:
        replace_results(loop, unroll.results(loop))
    for node in [n for n in changed.graph.nodes if n.op == "get_attr" and not n.users]:
        changed.graph.erase_node(node)
    changed.graph_module.recompile()
    return changed


def is_loop(node: Node) -> bool:
    """Return whether a node is a loop over slices."""
    target: object = node.target
    return isinstance(target, HigherOrderOperator) and target.name() in LOOPS


def _is_wanted(node: Node, symbolic: bool) -> bool:
    return is_loop(node) and not (symbolic and type(_number_of_slices(node)) is not int)


def _number_of_slices(loop: Node) -> object:
    lists = cast("tuple[Any, ...]", loop.args[1:])
    slices = lists[1] if len(lists) == 3 else lists[0]
    return value_of(slices[0]).shape[0]


class _Unroll:
    """Writes the bodies of loops.

    Args:
        root: the graph module of the program.
    """

    def __init__(self, root: GraphModule) -> None:
        self._root = root
        self._calls = 0
        self._graphs = 0

    def results(self, loop: Node) -> list[Node]:
        """Write the bodies of a loop before it; return what the loop gives: what is carried, and the stacked rest."""
        graph, *lists = cast("tuple[Any, ...]", loop.args)
        carried, slices, others = cast(
            "tuple[list[Any], list[Node], Sequence[Any]]", lists if len(lists) == 3 else ([], *lists)
        )
        body = cast(GraphModule, getattr(self._root, graph.target))
        write = CallWriter(loop)
        trips = self._trips(loop, body)
        # In front of all bodies, which are equal without the numbers of their slices.
        parts = [[write(_ATEN.select.int, tensor, 0, trip) for tensor in slices] for trip in range(trips)]
        rows: list[Sequence[Node]] = []
        for part in parts:
            given = copied(body.graph, [*carried, *part, *others], partial(self._copy, loop, body))
            carried, row = given[: len(carried)], given[len(carried) :]
            rows.append(row)
        return [*carried, *(write(_ATEN.stack.default, list(column)) for column in zip(*rows, strict=True))]

    def _trips(self, loop: Node, body: GraphModule) -> int:
        trips = _number_of_slices(loop)
        if not isinstance(trips, int):
            raise UnsupportedError(
                f"{loop.target} over a number of slices that is a symbol", where=place_of(loop), hint=STATIC
            )
        calls = sum(node.op == "call_function" for node in body.graph.nodes)
        self._calls += trips * calls
        if self._calls > MOST_CALLS:
            raise UnsupportedError(
                f"{loop.target} of {trips:,} slices over {calls:,} calls; all bodies may have {MOST_CALLS:,} calls",
                where=place_of(loop),
                hint="loop over fewer slices, or call the compiled body in a loop of your own",
            )
        return trips

    def _copy(self, loop: Node, body: GraphModule, node: Node, values: Mapping[Node, Any]) -> Node:
        """Copy a node of a body before the loop."""
        with loop.graph.inserting_before(loop):
            made = loop.graph.node_copy(node, lambda n: values[n])
        if node.op == "get_attr":
            made.target = self._adopted(getattr(body, str(node.target)))
        return made

    def _adopted(self, inner: object) -> str:
        """The name that a graph of a body has in the program."""
        name = f"unrolled_{self._graphs}"
        self._graphs += 1
        setattr(self._root, name, inner)
        return name
