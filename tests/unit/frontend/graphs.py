"""Small graphs of torch operators, as an export would give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx

from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses


def traced(function: Callable[..., Any], *examples: torch.Tensor) -> Graph:
    """The graph of a function of tensors, with the fake result of every node in ``meta["val"]``."""
    return make_fx(function, tracing_mode="fake")(*examples).graph


def calls(graph: Graph) -> list[Node]:
    """The nodes that call an operator, in order."""
    return [node for node in graph.nodes if node.op == "call_function"]


def placeholders(graph: Graph) -> list[Node]:
    """The inputs of a graph, in order."""
    return [node for node in graph.nodes if node.op == "placeholder"]


def exported(model: torch.nn.Module, *args: Any, **kwargs: Any) -> ExportedProgram:
    """A model as torch exports it, without its noise."""
    with flat_dataclasses(args, kwargs) as see:
        return export_model(model, args, kwargs, see)
