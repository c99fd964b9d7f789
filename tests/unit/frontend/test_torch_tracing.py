"""Functions of torch that are replaced in a trace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import spyre_mlir
from spyre_mlir.frontend.torch_tracing import (
    carried_apart,
    checkpoints_in_place,
    is_tracing,
    regions_in_place,
    tracing_alone,
)
from tests.functions import FunctionModel


def test_what_is_carried_twice_is_two_arguments_of_the_body() -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor, h: torch.Tensor) -> Any:
            return scan(lambda c, row: ((c[0] + row, c[1] * row), c[0] - c[1] + h), (h, h), x, dim=0)

    with torch.no_grad(), carried_apart():
        traced = torch.export.export(Twice(), (torch.ones(3, 2), torch.ones(2)))
    (body,) = (m for m in traced.graph_module.children() if isinstance(m, torch.fx.GraphModule))
    assert all(node.users for node in body.graph.find_nodes(op="placeholder"))


def graph_of(function: Any) -> Any:
    """What Dynamo captures of a function of one tensor, with its output opened."""
    captured: list[Any] = []

    def keep(graph: torch.fx.GraphModule, _: Any) -> Any:
        captured.append(graph)
        return graph

    torch._dynamo.reset()
    torch.compile(function, backend=keep)(torch.ones(2, 2))
    return captured[0]


@torch.compiler.nested_compile_region
def doubled(x: torch.Tensor) -> torch.Tensor:
    return (x + x).sin()


def test_checkpoints_and_regions_are_traced_where_they_are_called() -> None:
    kept = graph_of(lambda x: checkpoint(lambda a: (a + a).sin(), x, use_reentrant=False).cos())
    regions = graph_of(lambda x: doubled(x).cos())
    for graph, in_place in ((kept, checkpoints_in_place()), (regions, regions_in_place())):
        assert any(isinstance(module, torch.fx.GraphModule) for module in graph.children())
        with torch.no_grad(), in_place:
            traced = torch.export.export(graph, (torch.ones(2, 2),))
        assert [n.name for n in traced.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default)] == [
            "sin"
        ]
        assert {n.target.namespace for n in traced.graph.nodes if n.op == "call_function"} == {"aten"}


class Tripled(torch.autograd.Function):
    """A function with a backward pass of its own, which torch's trace has no form for inside of a map."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 3


MAPS: dict[str, Any] = {
    "batch behind": lambda x: torch.vmap(lambda row: (row[:, None] * row, row.sum()), out_dims=(-1, 0))(x),
    "batch inside": lambda x: torch.vmap(lambda w: functional.conv1d(x[None], w))(x[:3, None, None].expand(3, 2, 4, 3)),
    "maps in maps": lambda x: torch.vmap(torch.vmap(lambda a: (a * 2.5 + 1).clamp(-1, 1)), out_dims=1)(x),
    "a number and its type": lambda x: torch.vmap(torch.vmap(torch.func.grad(lambda a: a.sin() * 2)))(x),
    "a function": lambda x: torch.vmap(lambda row: Tripled.apply(row))(x),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_give_eagers_numbers(name: str) -> None:
    x = torch.arange(12.0).reshape(4, 3) / 5 - 1
    model = FunctionModel(MAPS[name])
    got = spyre_mlir.compile(model, (x,), numerics="exact")(x)
    torch.testing.assert_close(got, model(x), rtol=2e-5, atol=2e-5)


def test_an_import_waits_for_another_threads_trace() -> None:
    with ThreadPoolExecutor(1) as thread:
        with tracing_alone():
            made = thread.submit(spyre_mlir.compile, FunctionModel(torch.neg), (torch.ones(2),))
            assert wait([made], timeout=0.5).not_done
        assert made.result()(torch.ones(2)).tolist() == [-1, -1]


def test_a_thread_knows_that_it_traces() -> None:
    with ThreadPoolExecutor(1) as thread, tracing_alone(), tracing_alone():
        assert is_tracing()
        assert not thread.submit(is_tracing).result()
    assert not is_tracing()


def test_weights_can_be_swapped_after_an_import() -> None:
    """A trace leaves weak references to them, with which torch refuses."""
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    compiled = spyre_mlir.compile(model, (x,))
    compiled(x)
    torch.utils.swap_tensors(model.weight, nn.Parameter(torch.ones(4, 4)))
    with pytest.raises(spyre_mlir.SpyreError, match="the model has another tensor 'weight'"):
        compiled(x)
    torch.testing.assert_close(spyre_mlir.compile(model, (x,))(x), model(x), atol=0.02, rtol=0.01)
