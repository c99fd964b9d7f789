"""`torch.compile` without a back end, for graphs on the device.

Decision: docs/decisions/0107-graphs-on-the-device-leave-inductor.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

import torch
from torch.fx import GraphModule, Node

from spyre_mlir.choices import Numerics
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import storage_identity
from spyre_mlir.torch_compile.backend import Captured
from spyre_mlir.torch_compile.dynamo_private import inductor_mode
from spyre_mlir.torch_device.graphs import device_of
from spyre_mlir.torch_device.names import DEVICE

_NAMED = 'name the back end: torch.compile(model, backend="spyre", options=…)'


def compile_on_device(graph: GraphModule, settings: Mapping[str, Any]) -> Callable[..., Any]:
    """Compile a captured graph on the device, to run in the numerics that `torch.spyre` has at a call.

    Args:
        graph: what Dynamo captured, with tensors on the device.
        settings: options of Inductor that the caller asked for, by a mode or by name.

    Raises:
        InputError: there are settings, or the graph computes on another device too.
    """
    if settings:
        mode = inductor_mode(settings)
        asked = f"option {', '.join(settings)}" if mode is None else f"mode {mode}"
        raise InputError(f"torch.compile has no {asked} for a graph on {DEVICE}", hint=f"leave it out, or {_NAMED}")
    if (node := _computed_elsewhere(graph)) is not None:
        raise InputError(
            f"a graph computes on {DEVICE}, and {node.name} on {device_of(node)}",
            where=place_of(node),
            hint=f"compile what runs on the device by itself, or {_NAMED}",
        )
    numerics = get_args(Numerics)
    captured = Captured.of(graph, [{"numerics": each} for each in numerics])
    return lambda *inputs: captured.run(numerics.index(cast(Any, torch).spyre.numerics), inputs)


def _computed_elsewhere(graph: GraphModule) -> Node | None:
    """The first node that computes a tensor of another device from others there: more than a number, or a view."""
    for node in graph.graph.nodes:
        value = node.meta.get("example_value")
        if not isinstance(value, torch.Tensor) or value.device.type == DEVICE or not value.dim():
            continue
        sources = [n.meta["example_value"] for n in node.all_input_nodes if device_of(n) is not None]
        if sources and not any(
            s.device.type == DEVICE or storage_identity(s) == storage_identity(value) for s in sources
        ):
            return node
    return None
