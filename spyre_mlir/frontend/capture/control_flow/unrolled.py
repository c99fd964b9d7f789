"""Loops over the few slices of tensors, `scan` and `map`: the body is written once per slice.

The number of slices is known, so the program has no loop to decide about: what a body carries to the next stays on the
device, and `outline-regions` may make equal bodies one function again. Loops over many slices stay (`long_loops`).

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
from spyre_mlir.frontend.capture.call_writer import CallWriter, replace_results
from spyre_mlir.frontend.capture.control_flow.kept import body_of, given_to_loop, is_loop
from spyre_mlir.frontend.capture.control_flow.long_loops import number_of_slices, stays_loop
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import copied, graphs_of
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.symbolic.sizes import STATIC

_ATEN = torch.ops.aten
MOST_CALLS = 8192  # of all bodies together; each is lowered unless it equals others


def unroll_loops(exported: ExportedProgram, *, symbolic: bool = False) -> ExportedProgram:
    """Return a program without loops over few slices, in branches and bodies neither; the program given stays as it is.

    Args:
        exported: the program.
        symbolic: whether loops over a number of slices that is a symbol stay, and all others are unrolled.

    Raises:
        UnsupportedError: the number of slices is a symbol, or the bodies are too many calls.
    """
    if not any(_wanted(module, symbolic) for module in graphs_of(exported.graph_module)):
        return exported
    changed = with_own_graph(exported)
    _Unroll(symbolic).within(changed.graph_module)
    return changed


def _wanted(module: GraphModule, symbolic: bool) -> Node | None:
    """The first loop of a graph that is to be unrolled."""
    loops = filter(is_loop, module.graph.nodes)
    if symbolic:
        return next((n for n in loops if type(number_of_slices(n)) is int), None)
    return next((n for n in loops if not stays_loop(n)), None)


class _Unroll:
    """Writes the bodies of loops.

    Args:
        symbolic: whether loops over a number of slices that is a symbol stay.
    """

    def __init__(self, symbolic: bool) -> None:
        self._symbolic = symbolic
        self._calls = 0
        self._graphs = 0

    def within(self, module: GraphModule) -> None:
        """Unroll the loops of the graphs that a graph calls, which may make loops around them stay, then its own."""
        for node in module.graph.find_nodes(op="get_attr"):
            if isinstance(inner := getattr(module, str(node.target), None), GraphModule):
                self.within(inner)
        while (loop := _wanted(module, self._symbolic)) is not None:
            replace_results(loop, self._results(loop))
        for node in module.graph.find_nodes(op="get_attr"):
            if not node.users:
                module.graph.erase_node(node)
        module.recompile()

    def _results(self, loop: Node) -> list[Node]:
        """Write the bodies of a loop before it; return what the loop gives: what is carried, and the stacked rest."""
        carried, slices, others = given_to_loop(loop)
        _, body = body_of(loop)
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
        trips = number_of_slices(loop)
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
            made.target = self._adopted(_owner(loop), getattr(body, str(node.target)))
        return made

    def _adopted(self, owner: GraphModule, inner: object) -> str:
        """The name that a graph of a body has in the graph module that is given it."""
        while hasattr(owner, name := f"unrolled_{self._graphs}"):
            self._graphs += 1
        setattr(owner, name, inner)
        return name


def _owner(node: Node) -> GraphModule:
    return cast(GraphModule, node.graph.owning_module)
