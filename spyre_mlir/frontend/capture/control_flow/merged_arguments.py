"""Exported loops whose bodies read one argument for two: torch takes equal tensors for one when it traces a body.

What a `scan` carries changes from slice to slice, and what its body reads besides does not. A program that torch has
exported lost which one was meant; our own export keeps them apart (`frontend/torch_tracing.py`).
"""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.control_flow.kept import body_of, given_to_loop, is_loop
from spyre_mlir.frontend.locations import place_of


def check_arguments_apart(exported: ExportedProgram) -> None:
    """Check a program that torch has exported before.

    Raises:
        UnsupportedError: a loop over slices is given one tensor twice, carries it, and reads one of the two alone.
    """
    graphs = [m.graph for m in exported.graph_module.modules() if isinstance(m, GraphModule)]
    for node in [n for graph in graphs for n in graph.nodes if is_loop(n)]:
        if _is_merged(node):
            raise UnsupportedError(
                "the body of a scan is given one tensor twice, and the exported program lost which it reads where",
                where=place_of(node),
                hint="compile the module itself, compile(model, example inputs), or give the scan a clone",
            )


def _is_merged(loop: Node) -> bool:
    carried, sliced, others = given_to_loop(loop)
    given = [*carried, *[None] * len(sliced), *others]
    arguments = body_of(loop)[1].graph.find_nodes(op="placeholder")
    for number, operand in enumerate(carried):
        same = [n for n, other in enumerate(given) if n != number and other is operand]
        if any(bool(arguments[number].users) != bool(arguments[n].users) for n in same):
            return True
    return False


__all__ = ["check_arguments_apart"]
