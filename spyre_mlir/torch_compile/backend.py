"""The back end that Dynamo calls once per captured graph.

Decision: docs/decisions/0071-torch-compile-re-exports.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import GraphModule

from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.torch_compile.captured.counts import Counts
from spyre_mlir.torch_compile.captured.false_checks import without_false_checks
from spyre_mlir.torch_compile.captured.unfused import unfused
from spyre_mlir.torch_compile.graph import CapturedGraph
from spyre_mlir.torch_compile.kept_names import forget_breaks, note_break
from spyre_mlir.torch_compile.no_backward import needs_backward, run_without_backward
from spyre_mlir.torch_compile.settings import Settings
from spyre_mlir.torch_compile.sharded import ShardedGraph, is_sharded
from spyre_mlir.torch_compile.training import TrainedGraph
from spyre_mlir.torch_device.graphs import is_on_device, on_host, results_on_device
from spyre_mlir.torch_device.names import DEVICE
from spyre_mlir.torch_device.registration import is_on
from spyre_mlir.torch_device.tensor import as_device_tensor, as_host_tensor


def spyre(
    graph: GraphModule,
    example_inputs: Sequence[Any],  # noqa: ARG001 - Dynamo's interface
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a captured graph for Spyre and run it on the hardware model.

    The graph is compiled when it is first called, and again for every other size of its inputs.

    Args:
        graph: what Dynamo captured.
        example_inputs: the inputs of the call at hand.
        options: keyword arguments of `spyre_mlir.compile`, as in ``torch.compile(model, backend="spyre",
            options={"numerics": "exact"})``; and ``training``, whether what autograd records has a backward pass.
        mode: ``default``; the other modes of torch.compile choose between ways in which GPUs run kernels.

    Raises:
        InputError: an option that `compile` does not have, or another mode.
    """
    settings = Settings.of(mode, options)
    captured = Captured.of(graph, [settings.options], training=settings.training)
    return lambda *inputs: captured.run(0, inputs)


cast(Any, spyre).reset = forget_breaks  # Dynamo calls it where it forgets all graphs itself, in `torch._dynamo.reset`


@dataclass(frozen=True)
class Captured:
    """A graph captured by Dynamo, to run with one of several sets of options.

    Attributes:
        programs: the graph on the host, for every set of options.
        on_device: which results are tensors of the device.
        counts: the graph apart from what it counts.
        trained: the graph with a backward pass, for every set of options; none without training.
        sharded: the graph for inputs of which a rank has a part, for every set of options.
    """

    programs: Sequence[CapturedGraph]
    on_device: Sequence[bool]
    counts: Counts
    trained: Sequence[TrainedGraph] = ()
    sharded: Sequence[ShardedGraph] = ()

    @staticmethod
    def of(
        graph: GraphModule, options: Sequence[Mapping[str, Any]], *, holds: bool = False, training: bool = False
    ) -> Captured:
        """Bring a graph to the host; it is compiled when it runs.

        Args:
            graph: what Dynamo captured.
            options: sets of options of `compile`.
            holds: see `CapturedGraph`.
            training: whether calls that autograd records have a backward pass.

        Raises:
            InputError: its tensors are on a device ``spyre`` of another package.
        """
        if is_on_device(graph) and not is_on():
            raise InputError(
                f"the graph has tensors on the device {DEVICE} of another package, {getattr(torch, DEVICE, None)!r}",
                hint='bring them to the host, x.cpu(); backend="spyre" takes them from there',
            )
        for each in options:
            note_break(graph, each)
        on_device = results_on_device(graph)
        counts = Counts.apart(on_host(without_false_checks(unfused(graph))))
        programs = [CapturedGraph(counts.graph, each, holds) for each in options]
        trained = [TrainedGraph(each) for each in programs] if training else ()
        return Captured(programs, on_device, counts, trained, [ShardedGraph(each) for each in programs])

    def run(self, chosen: int, inputs: Sequence[Any]) -> Any:
        """Run the graph with a set of options; without training, the results' backward pass raises an explanation.

        Tensors of the device are not trained.

        Raises:
            UnsupportedError: tensors of which a rank has a part are to be trained.
        """

        def compute(*inputs: Any) -> Any:
            with torch.inference_mode(False), torch.no_grad():
                given = [as_host_tensor(x) for x in self.counts.given(inputs)]
                results = (self.sharded if is_sharded(given) else self.programs)[chosen](*given)
            there = zip(self.counts.completed(results, inputs), self.on_device, strict=True)
            return tuple(as_device_tensor(r) if on_device else r for r, on_device in there)

        if not needs_backward(inputs):
            return compute(*inputs)
        if not self.trained or any(self.on_device) or any(_is_on_device(x) for x in inputs):
            return run_without_backward(compute, inputs, training=bool(self.trained))
        if is_sharded(given := self.counts.given(inputs)):
            raise UnsupportedError(
                "the backward pass of a graph with tensors of which a rank has a part, as a DTensor",
                hint="train whole tensors on each rank, as DistributedDataParallel does, or run under torch.no_grad()",
            )
        return self.counts.completed(self.trained[chosen](*given), inputs)


def _is_on_device(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE
