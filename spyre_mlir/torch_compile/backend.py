"""The back end that Dynamo calls, once per graph it captures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from spyre_mlir import api
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_private import capture_recurrent_layers
from spyre_mlir.torch_compile.graph import CapturedGraph
from spyre_mlir.torch_compile.no_backward import needs_backward, run_without_backward
from spyre_mlir.torch_device.tensor import as_device_tensor, as_host_tensor, on_host, results_on_device

# Encoder layers would take one fused operator that is no composition of others, and Dynamo passes recurrent layers by
# unless told otherwise. Both are settings of the process; whoever asks for this back end wants graphs.
torch.backends.mha.set_fastpath_enabled(False)
capture_recurrent_layers()

_GIVEN_BY_DYNAMO = ("model", "example_inputs", "example_kwargs")


def spyre(
    graph: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compiles a captured graph for Spyre and runs it on the hardware model.

    The graph is compiled when it is first called, and again for every other size of its inputs.

    Args:
        graph: what Dynamo captured.
        example_inputs: the inputs of the call at hand.
        options: keyword arguments of `spyre_mlir.compile`, as in ``torch.compile(model, backend="spyre",
            options={"numerics": "exact"})``.
        mode: of torch.compile, for other back ends.

    Raises:
        InputError: an option that `compile` does not have, or a mode.
    """
    if mode is not None:
        raise InputError(f'torch.compile(backend="spyre") has no mode {mode}', hint="leave it out; see `options`")
    on_device = results_on_device(graph)
    captured = CapturedGraph(on_host(graph), _checked(options or {}))

    def run(*inputs: Any) -> Any:
        return run_without_backward(compute, inputs) if needs_backward(inputs) else compute(*inputs)

    def compute(*inputs: Any) -> Any:
        with torch.inference_mode(False), torch.no_grad():
            results = captured(*map(as_host_tensor, inputs))
        return tuple(as_device_tensor(r) if there else r for r, there in zip(results, on_device, strict=True))

    return run


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    known = [name for name in inspect.signature(api.compile).parameters if name not in _GIVEN_BY_DYNAMO]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise InputError(
            f'torch.compile(backend="spyre") has no option {", ".join(unknown)}',
            hint=f"the options are {', '.join(known)}",
        )
    return dict(options)
