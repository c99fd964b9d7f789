"""Bags of rows that are asked for the folded rows alone, and of which torch's eager and its rules for shapes differ.

They do about the other results, which nobody reads then: where offsets end with that of the end, and where weights do
not lie one behind the other. Without the last offset, and with a copy of the weights, they agree.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.call_writer import CallWriter
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram

_FOLDED = torch.ops.aten._embedding_bag_forward_only.default
# Torch traces the other one where rows require gradients, as those of an `EmbeddingBag` do.
_BAGS = (_FOLDED, torch.ops.aten._embedding_bag.default)


def plain_bags(program: FunctionalProgram) -> FunctionalProgram:
    """Leave last offsets out, which torch wants to be the number of all rows, and lay weights out; in place."""
    for node in list(program.graph.nodes):
        if node.target not in _BAGS or not _is_folded_alone(node):
            continue
        given, write = {name: argument.value for name, argument in bind(node).items()}, CallWriter(node)
        changed: dict[str, object] = {}
        if given["include_last_offset"]:
            starts = write(torch.ops.aten.slice.Tensor, given["offsets"], 0, 0, -1)
            changed |= {"offsets": starts, "include_last_offset": False}
        weights = given["per_sample_weights"]
        if isinstance(weights, Node) and _has_gaps(weights.meta["val"]):
            laid = write(torch.ops.aten.clone.default, weights, memory_format=torch.contiguous_format)
            changed |= {"per_sample_weights": laid}
        if changed or node.target is not _FOLDED:
            node.replace_all_uses_with(write(_FOLDED, *(given | changed).values()))
            program.graph.erase_node(node)
    return program


def _has_gaps(weights: torch.Tensor) -> bool:
    """Whether weights may not lie one behind the other; asks nothing of a size that data decides."""
    return any(not isinstance(step, int) or step != 1 for step in cast("Sequence[object]", weights.stride()))


def _is_folded_alone(node: Node) -> bool:
    """Whether nobody reads the results behind the first."""
    return all(user.target is operator.getitem and (user.args[1] == 0 or not user.users) for user in node.users)


__all__ = ["plain_bags"]
