"""Numbers of Python that control flow is given and that torch knows: constants of its graphs.

A size that an export made static stays an operand of the branches and bodies that read it. Torch decomposes no graph
that is given a plain number, and a loop over slices stays one if it is given tensors and symbols alone.
"""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node

from spyre_mlir.frontend.capture.control_flow.kept import called_graphs, calls_graphs, operands_of, without_operands
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import graphs_of as graphs_within
from spyre_mlir.frontend.symbolic.sizes import known_extent


def with_known_numbers(exported: ExportedProgram) -> ExportedProgram:
    """Return a program whose control flow is given no number that is known; the program given stays as it is."""
    if not any(_known(node) for module in graphs_within(exported.graph_module) for node in module.graph.nodes):
        return exported
    changed = with_own_graph(exported)
    for module in graphs_within(changed.graph_module):  # the outermost first, which says numbers to those within
        for node in module.graph.nodes:
            if known := _known(node):
                for _, inner in called_graphs(node):
                    arguments = inner.graph.find_nodes(op="placeholder")
                    for place, number in known.items():
                        arguments[place].replace_all_uses_with(number)
                        inner.graph.erase_node(arguments[place])
                without_operands(node, known)
        module.recompile()
    return changed


def _known(node: Node) -> dict[int, int]:
    """The known numbers that control flow is given, by place; a number that it carries is another one in each trip."""
    if not calls_graphs(node):
        return {}
    arguments = (inner.graph.find_nodes(op="placeholder") for _, inner in called_graphs(node))
    rows = enumerate(zip(operands_of(node)[1], *arguments, strict=True))
    found = {place: [number for part in parts if (number := _number(part)) is not None] for place, parts in rows}
    return {place: numbers[0] for place, numbers in found.items() if len(numbers) == 1 + len(called_graphs(node))}


def _number(operand: Any) -> int | None:
    value = operand.meta.get("val") if isinstance(operand, Node) else operand
    number = known_extent(value)
    return number if type(number) is int else None


__all__ = ["with_known_numbers"]
