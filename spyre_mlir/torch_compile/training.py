"""Training: the forward and the backward pass of a captured graph, each compiled like any other graph.

Decision: docs/decisions/0151-training-is-asked-for.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import torch
from torch.fx import GraphModule, Interpreter
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel

from spyre_mlir.frontend import signature_of
from spyre_mlir.frontend.capture.effects.functional_calls import call_again, without_tokens
from spyre_mlir.frontend.capture.operator_tracing import no_cpu_libraries
from spyre_mlir.frontend.capture.random_draws.differentiated import refusals_out_of_order
from spyre_mlir.frontend.capture.random_draws.recurrent import LayersApart
from spyre_mlir.frontend.torch_private import disable_modes, is_written
from spyre_mlir.frontend.torch_tracing import regions_in_place
from spyre_mlir.torch_compile.graph import CapturedGraph
from spyre_mlir.torch_compile.history import Capture
from spyre_mlir.torch_compile.partition import passes

TRAINING = "training"
BACKWARD = "backward"
_ATEN = torch.ops.aten


@dataclass(frozen=True)
class TrainedGraph:
    """A captured graph whose results have a backward pass.

    Torch differentiates it anew for other sizes, types and needs of gradients; the backward pass is compiled when it
    first runs.

    Attributes:
        forward: the captured graph, with its names and options.
    """

    forward: CapturedGraph
    _made: dict[tuple[str, tuple[bool, ...]], Callable[..., Any]] = field(
        default_factory=dict[tuple[str, tuple[bool, ...]], Callable[..., Any]]
    )

    def __call__(self, *inputs: Any) -> Any:
        """Return the results of the graph, of which `backward` may be called; mutated inputs are written."""
        wanted = tuple(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
        key = signature_of(inputs, {}), wanted
        if key not in self._made:
            self._made[key] = self._differentiated()
        return self._made[key](*inputs)

    def _differentiated(self) -> Callable[..., Any]:
        from functorch.compile import aot_function  # a second

        named = self.forward.named
        backward = replace(named, function=f"{named.function}_{BACKWARD}")
        compilers = [partial(_compiled, options=self.forward.options, capture=each) for each in (named, backward)]
        written, table = list[bool](), refusals_out_of_order()
        run, parts = partial(self._run, written), partial(passes, written=written)
        return cast(Any, aot_function)(run, *compilers, partition_fn=parts, decompositions=table)

    def _run(self, written: list[bool], *inputs: Any) -> Any:
        """The results of the graph in a trace, which notes to which inputs it writes."""
        # Places in the model are kept, and attention and recurrent layers are in operators whose backward pass the
        # compiler knows.
        with preserve_node_meta(), sdpa_kernel(SDPBackend.MATH), no_cpu_libraries(), regions_in_place(), LayersApart():
            results = Interpreter(self.forward.graph).run(*inputs)
        written[:] = [isinstance(given, torch.Tensor) and is_written(given) for given in inputs]
        return results


def _compiled(
    graph: GraphModule,
    inputs: Sequence[Any],  # noqa: ARG001 - AOTAutograd's interface
    *,
    options: Mapping[str, Any],
    capture: Capture,
) -> Callable[[list[Any]], Any]:
    """One pass as AOTAutograd calls it: with a list that the callee empties."""
    for node in graph.graph.find_nodes(op="call_function", target=_ATEN.view.default):
        node.target = _ATEN.reshape.default  # strides of this graph are eager's, the compiler's may differ
    call_again(graph.graph)
    without_tokens(graph.graph)
    part = CapturedGraph(graph, options, capture=capture, trains=True)

    def run(inputs: list[Any]) -> Any:
        given = list(inputs)
        inputs.clear()
        # AOTAutograd watches the first call of a program in a mode of its own, in which nothing could be exported.
        with disable_modes(), torch.inference_mode(False), torch.no_grad():
            return part(*given)

    # A function of Dynamo that calls `backward` runs it between its graphs, where it would trace the compiler.
    called = cast(Callable[..., Any], cast(Any, torch.compiler).disable(run))
    cast(Any, called)._boxed_call = True
    return called
