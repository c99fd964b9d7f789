"""Captured graphs with device tensors: which of their tensors are on the device, and how they run on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.fx.node import map_aggregate

from spyre_mlir.torch_device.names import DEVICE


def on_host(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a captured graph that runs on host tensors; copies from device to device stay copies."""

    def moved(value: Any) -> Any:
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == DEVICE else value

    for node in list(graph.graph.nodes):
        node.args, node.kwargs = cast(Any, map_aggregate((node.args, node.kwargs), moved))
        operands = {device_of(n) for n in node.all_input_nodes} - {None}
        if node.op != "output" and operands and device_of(node) not in (None, *operands):
            with graph.graph.inserting_after(node):
                copy = graph.graph.call_function(torch.clone, (node,))
            copy.meta = dict(node.meta)
            node.replace_all_uses_with(copy)
            copy.args = (node,)
    graph.recompile()
    return graph


def results_on_device(graph: torch.fx.GraphModule) -> list[bool]:
    """Return which results of a captured graph are device tensors."""
    results = next(iter(graph.graph.find_nodes(op="output"))).args[0]
    return [isinstance(r, torch.fx.Node) and device_of(r) == DEVICE for r in cast("Sequence[object]", results)]


def is_on_device(graph: torch.fx.GraphModule) -> bool:
    """Return whether a captured graph takes, makes or returns device tensors."""
    return any(device_of(node) == DEVICE for node in graph.graph.nodes)


def device_of(node: torch.fx.Node) -> str | None:
    """Return the device kind of a tensor, as Dynamo recorded it."""
    value = node.meta.get("example_value")
    return value.device.type if isinstance(value, torch.Tensor) else None
