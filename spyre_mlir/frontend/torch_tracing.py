"""Functions of torch that are replaced while the frontend traces, and the lock of those that trace.

Used, private: `_higher_order_ops.scan` (tensors that bodies of loops are traced with), `.cond` and `.while_loop` (what
is traced of them), `.wrap` and `.invoke_subgraph` (parts that Dynamo keeps as graphs of their own),
`_functorch.predispatch` (what ends a map), `_functional_collectives` (what torch calls in place of other collectives),
`_dynamo.convert_frame.compile_lock`, `FakeTensorMode.fake_tensor_converter` (weak references to tensors of a trace).
`torch_private` has what is used as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from typing import Any, cast

import torch
from torch._functorch import predispatch
from torch._higher_order_ops.cond import CondOp
from torch._higher_order_ops.invoke_subgraph import InvokeSubgraphHOP
from torch._higher_order_ops.while_loop import WhileLoopOp
from torch._higher_order_ops.wrap import TagActivationCheckpoint
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed import _functional_collectives
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.fx.traceback import preserve_node_meta

from spyre_mlir.frontend.graph_runs import CapturedCalls


def tracing_alone() -> AbstractContextManager[object]:
    """Trace in the block as the only thread; a thread may begin such a block inside of one.

    Tracing exchanges functions and classes of torch for the whole process, and filters of warnings. Dynamo has a lock
    for that, which it holds while it captures and while back ends compile; ours compiles at the first call.
    """
    return import_module("torch._dynamo.convert_frame").compile_lock  # takes a second to load, as in every export


def is_tracing() -> bool:
    """Return whether this thread is inside of such a block, or of Dynamo's capture."""
    dynamo = sys.modules.get("torch._dynamo.convert_frame")
    return dynamo is not None and cast(Any, dynamo).compile_lock._is_owned()


@contextmanager
def bodies_as_written() -> Generator[None]:
    """Trace the graphs and functions that calls are given: with their hints, and in place if they run once."""
    with preserve_node_meta(), carried_apart(), checkpoints_in_place(), regions_in_place(), batches_in_any_place():
        yield


@contextmanager
def graphs_as_written() -> Generator[None]:
    """Decompose the graphs that calls are given: in place if they run once, in the region of autocast around."""
    with carried_apart(), regions_in_place(), autocast_within_graphs():
        yield


@contextmanager
def carried_apart() -> Generator[None]:
    """Trace bodies of `scan` with a tensor of its own for each argument.

    Torch hands them one tensor for what is carried from a tensor and for the tensor itself, and then takes every use in
    the body for one of the last argument.
    """
    scan = cast(Any, import_module("torch._higher_order_ops.scan"))  # the name in the package is the function
    traced = scan.reenter_make_fx

    def apart(body: Any, *options: Any, **named: Any) -> Any:
        def trace(*args: Any) -> Any:
            tensors = [a if isinstance(a, torch.Tensor) else None for a in args]
            seen = [t is not None and any(t is before for before in tensors[:n]) for n, t in enumerate(tensors)]
            return traced(body, *options, **named)(*[a.clone() if s else a for a, s in zip(args, seen, strict=True)])

        return trace

    with _replaced(scan, "reenter_make_fx", apart):
        yield


@contextmanager
def checkpoints_in_place() -> Generator[None]:
    """Trace functions under `torch.utils.checkpoint` where they are called.

    Torch ends in a KeyError where Dynamo has kept it as a graph, without a policy of what is computed again.
    """

    def run(_: object, graph: GraphModule, *args: Any, **options: Any) -> Any:  # noqa: ARG001 - of the backward pass
        return CapturedCalls(graph).run(*args)

    with _replaced(TagActivationCheckpoint, "__call__", run):
        yield


@contextmanager
def regions_in_place() -> Generator[None]:
    """Trace regions of `torch.compiler.nested_compile_region`, which Dynamo keeps as graphs, where they are called."""

    def run(_: object, graph: Any, name: str | None, *args: Any) -> Any:  # noqa: ARG001 - of what is compiled once
        return CapturedCalls(graph).run(*args)

    with _replaced(InvokeSubgraphHOP, "__call__", run):
        yield


@contextmanager
def autocast_within_graphs() -> Generator[None]:
    """Trace branches, and bodies and conditions of loops, with the region of autocast that they are in inside of them.

    Torch traces such a graph and then runs what it made, both in the region: the second time, the region reaches what
    a region in the graph has kept from it.
    """

    def apart(kept: Callable[..., Any]) -> Callable[..., Any]:
        def run(operator: object, *args: Any, **options: Any) -> Any:
            if not torch.is_autocast_enabled("cpu"):
                return kept(operator, *args, **options)
            dtype = torch.get_autocast_dtype("cpu")
            within = [_in_region(a, dtype) if isinstance(a, GraphModule) else a for a in args]
            with torch.autocast("cpu", enabled=False):
                return kept(operator, *within, **options)

        return run

    with ExitStack() as replaced:
        for operator in (CondOp, WhileLoopOp):
            replaced.enter_context(_replaced(operator, "__call__", apart(cast(Any, operator).__call__)))
        yield


def _in_region(graph: GraphModule, dtype: torch.dtype) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with torch.autocast("cpu", dtype, cache_enabled=False):
            return CapturedCalls(graph).run(*args)

    return run


@contextmanager
def batches_in_any_place() -> Generator[None]:
    """Trace the end of `vmap` as one call, wherever the batch is in the result.

    Torch writes the permutation in this call down, too, of a tensor that the program does not know.
    """
    kept = cast(Any, predispatch)._remove_batch_dim_impl

    def remove(*args: Any) -> Any:
        with disable_proxy_modes_tracing():
            return kept(*args)

    with _replaced(predispatch, "_remove_batch_dim_impl", remove):
        yield


@contextmanager
def _replaced(holder: Any, name: str, function: Callable[..., Any]) -> Generator[None]:
    kept = getattr(holder, name)
    setattr(holder, name, function)
    try:
        yield
    finally:
        setattr(holder, name, kept)


@contextmanager
def collectives_left_alone() -> Generator[None]:
    """Let torch trace collectives that write to their arguments as calls, which a mode of functions sees."""
    others: dict[Any, Any] = cast(Any, _functional_collectives).traceable_collective_remaps
    kept = dict(others)
    others.clear()
    try:
        yield
    finally:
        others.update(kept)


def forget_tensors(graph: Graph) -> None:
    """Drop the weak references to weights that a trace has left: torch swaps no tensor that has one.

    Modules swap their weights in `load_state_dict(assign=…)`, `to` and quantization, as `torch.__future__` says.

    Args:
        graph: what was traced.
    """
    values: list[Any] = [node.meta.get("val") for node in graph.nodes]
    for mode in {value.fake_mode for value in values if isinstance(value, FakeTensor)}:
        mode.fake_tensor_converter.meta_converter.describer.lookup_tensor.clear()


__all__ = [
    "autocast_within_graphs",
    "batches_in_any_place",
    "bodies_as_written",
    "carried_apart",
    "checkpoints_in_place",
    "collectives_left_alone",
    "forget_tensors",
    "graphs_as_written",
    "is_tracing",
    "regions_in_place",
    "tracing_alone",
]
