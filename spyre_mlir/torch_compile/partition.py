"""The forward and the backward pass as parts of one differentiated graph, and what the first keeps for the second.

Decision: docs/decisions/0151-training-is-asked-for.md
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.data_sizes.branches import draws
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import WITHOUT_WRITES, storage_identity

_ATEN = torch.ops.aten
_CHANGES_STATISTICS = _ATEN._native_batch_norm_legit_functional.default
_RECOMPUTED = "recompute"  # where torch notes that the backward pass computes the result of a node again


def passes(
    joint: GraphModule, inputs: Sequence[Any], *, written: Sequence[bool], num_fwd_outputs: int, **named: Any
) -> tuple[GraphModule, GraphModule]:
    """Return the forward and the backward pass, which gets the random numbers that the forward pass draws.

    A checkpoint keeps them as well, where torch would draw the same numbers again, a normalisation whose running
    statistics the call changes, what operators write, and inputs as they were before the call has written them.

    Args:
        joint: the graph of both.
        inputs: of it.
        written: whether the forward pass writes to it, for each input of the captured graph.
        num_fwd_outputs: how many results the forward pass has by itself.
        named: more of AOTAutograd's.

    Raises:
        UnsupportedError: a gradient is sparse.
    """
    from functorch.compile import default_partition  # a second

    recomputes = any(_RECOMPUTED in node.meta for node in joint.graph.nodes)
    _check_dense(joint)
    for node in filter(_has_effects, joint.graph.nodes):
        for kept in (node, *(user for user in node.users if user.target is getitem)):
            if _RECOMPUTED in kept.meta:
                kept.meta[_RECOMPUTED] = CheckpointPolicy.MUST_SAVE

    forward, backward = default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **named)
    drawn = {node.name for node in forward.graph.nodes if draws(node)}
    for node in reversed(backward.graph.nodes):
        if node.name in drawn and not node.users:
            backward.graph.erase_node(node)
    backward.recompile()
    if recomputes:
        _keep_before_writes(forward, written, num_fwd_outputs)
    return forward, backward


def _check_dense(joint: GraphModule) -> None:
    for node in joint.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
            raise UnsupportedError(
                f"a gradient has the layout {value.layout}, which has no form",
                where=place_of(node),
                hint="have dense gradients: nn.Embedding(…, sparse=False), and an optimizer for these",
            )


def _has_effects(node: Node) -> bool:
    return draws(node) or node.target is _CHANGES_STATISTICS or node.target in WITHOUT_WRITES


def _keep_before_writes(forward: GraphModule, written: Sequence[bool], results: int) -> None:
    """Let the forward pass keep clones of inputs that are written behind it, and of views of them."""
    (output,) = forward.graph.find_nodes(op="output")
    given = forward.graph.find_nodes(op="placeholder")
    if len(given) != len(written):  # AOTAutograd gives views that are written to one base
        written = [True] * len(given)
    values = [node.meta.get("val") for node, changes in zip(given, written, strict=True) if changes]
    memory = {storage_identity(value) for value in values if isinstance(value, torch.Tensor)}
    kept: list[Any] = list(output.args[0])
    for place in range(results, len(kept)):
        value = kept[place].meta.get("val")
        if isinstance(value, torch.Tensor) and storage_identity(value) in memory:
            with forward.graph.inserting_before(output):
                clone = forward.graph.call_function(_ATEN.clone.default, (kept[place],))
            clone.meta = {**kept[place].meta, "val": value.clone()}
            kept[place] = clone
    output.args = (tuple(kept),)
    forward.recompile()


__all__ = ["passes"]
