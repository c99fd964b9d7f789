"""`torch.compile(model, backend="spyre")`: PyTorch's own entry point to the compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spyre_mlir.torch_compile.history import Compilation, compilations, explain, forget, programs

if TYPE_CHECKING:
    from spyre_mlir.torch_compile.backend import spyre

__all__ = ["Compilation", "compilations", "explain", "forget", "programs", "spyre"]


def __getattr__(name: str) -> Any:
    """Makes the back end known to Dynamo's tracer when it is asked for; importing the package changes nothing."""
    if name != "spyre":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spyre_mlir.torch_compile.backend import spyre
    from spyre_mlir.torch_compile.dynamo_private import trace_whole_graphs_for

    trace_whole_graphs_for(spyre)
    return spyre
