"""Bags of rows whose offsets end with that of the end, and which are asked for the folded rows alone.

Torch's eager and its rules for shapes disagree about the other results, which nobody reads then. Without the last
offset they agree.
"""

from __future__ import annotations

import operator

import torch
from torch.fx import Node

from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.call_writer import CallWriter
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram

_BAGS = torch.ops.aten._embedding_bag_forward_only.default


def without_last_offsets(program: FunctionalProgram) -> FunctionalProgram:
    """Leave last offsets out, which torch wants to be the number of all rows; the program is changed in place."""
    for node in list(program.graph.nodes):
        if node.target is _BAGS and bind(node)["include_last_offset"].value and _is_folded_alone(node):
            given, write = {name: argument.value for name, argument in bind(node).items()}, CallWriter(node)
            starts = write(torch.ops.aten.slice.Tensor, given["offsets"], 0, 0, -1)
            given |= {"offsets": starts, "include_last_offset": False}
            node.replace_all_uses_with(write(_BAGS, *given.values()))
            program.graph.erase_node(node)
    return program


def _is_folded_alone(node: Node) -> bool:
    """Whether nobody reads the results behind the first."""
    return all(user.target is operator.getitem and (user.args[1] == 0 or not user.users) for user in node.users)


__all__ = ["without_last_offsets"]
