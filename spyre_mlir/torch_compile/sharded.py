"""Graphs whose inputs are tensors that stand for others, as a `DTensor` does: compiled for what this rank holds.

Torch rewrites such a graph to one of plain tensors and collectives, for the placements of the inputs at hand.

Decision: docs/decisions/0153-collectives-are-steps-of-the-host.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.fx import GraphModule, Interpreter
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel

from spyre_mlir.frontend import signature_of
from spyre_mlir.frontend.capture.tracing.given import check_dense
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import disable_modes, is_wrapper, parts_of
from spyre_mlir.torch_compile.graph import CapturedGraph

_ATEN = torch.ops.aten
_PLAIN = (torch.Tensor, int, float, torch.SymInt, torch.SymFloat)


def is_sharded(inputs: Sequence[Any]) -> bool:
    """Return whether one of the inputs stands for other tensors."""
    return any(isinstance(x, torch.Tensor) and is_wrapper(x) for x in inputs)


@dataclass
class ShardedGraph:
    """A captured graph, called with inputs that stand for others.

    Attributes:
        graph: the captured graph, with its names and options.
    """

    graph: CapturedGraph
    _made: dict[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    _parameters: frozenset[int] = frozenset()

    def __call__(self, *inputs: Any) -> Any:
        """Return the results of the graph, which stand for others where eager's do; mutated inputs are written.

        Raises:
            UnsupportedError: an input is a nested tensor.
        """
        self._check_dense(inputs)
        key = signature_of(inputs, {}) + "".join(map(_placed, inputs))
        if key not in self._made:
            from functorch.compile import aot_function  # a second

            self._made[key] = cast(Any, aot_function)(self._run, self._compiled)
        self._parameters = frozenset(id(p) for x in inputs if isinstance(x, torch.nn.Parameter) for p in parts_of(x))
        return self._made[key](*inputs)

    def _check_dense(self, inputs: Sequence[Any]) -> None:
        """Refuses sparse and nested tensors, at the first call that reads them."""
        nodes = self.graph.graph.graph.find_nodes(op="placeholder")
        for node, value in zip(nodes, inputs, strict=True):
            if isinstance(value, torch.Tensor) and (value.is_nested or value.layout is not torch.strided):
                check_dense(**{place_of(next(iter(node.users), node)): value})

    def _run(self, *inputs: Any) -> Any:
        # Places in the model are kept; attention is in operators that tell how they are divided among ranks.
        with preserve_node_meta(), sdpa_kernel(SDPBackend.MATH):
            return Interpreter(self.graph.graph).run(*inputs)

    def _compiled(self, graph: GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        for node in graph.graph.find_nodes(op="call_function", target=_ATEN.view.default):
            node.target = _ATEN.reshape.default  # strides of this graph are eager's, the compiler's may differ
        passed = _without_meshes(graph, inputs)
        plain = CapturedGraph(graph, self.graph.options, capture=self.graph.named)

        def run(inputs: list[Any]) -> Any:
            given = [self._as_parameter(x) for x in inputs if isinstance(x, _PLAIN)]
            meshes = [None if place is None else inputs[place] for place in passed]
            inputs.clear()
            # AOTAutograd watches the first call of a program in a mode of its own, in which nothing could be exported.
            with disable_modes(), torch.inference_mode(False), torch.no_grad():
                results = iter(plain(*given))
            return tuple(next(results) if mesh is None else mesh for mesh in meshes)

        cast(Any, run)._boxed_call = True
        return run

    def _as_parameter(self, value: Any) -> Any:
        """The part of a parameter that this rank has as a parameter, so that it stays on the card."""
        return torch.nn.Parameter(value, requires_grad=False) if id(value) in self._parameters else value


def _without_meshes(graph: GraphModule, inputs: Sequence[Any]) -> list[int | None]:
    """Take from a graph its inputs that are no tensors or numbers, in place: meshes of ranks, which it only gives back.

    Returns:
        Per result, the number of the input that it is; None for what the graph computes.
    """
    output, placeholders = graph.graph.output_node(), graph.graph.find_nodes(op="placeholder")
    meshes = {node: n for n, node in enumerate(placeholders) if not isinstance(inputs[n], _PLAIN)}
    results = cast("Sequence[Any]", output.args[0])
    passed = [meshes.get(result) for result in results]
    output.args = (tuple(r for r, place in zip(results, passed, strict=True) if place is None),)
    for node in meshes:
        if not node.users:
            graph.graph.erase_node(node)
    graph.recompile()
    return passed


def _placed(value: Any) -> str:
    """How a tensor that stands for others is divided among ranks; "" for other values."""
    if not isinstance(value, torch.Tensor) or not is_wrapper(value):
        return ""
    sizes = [tuple(part.shape) for part in parts_of(value)]
    return f" {getattr(value, 'placements', type(value).__name__)} {sizes}"
