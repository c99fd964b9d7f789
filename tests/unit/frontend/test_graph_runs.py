"""Runs of graphs: numbers of Python are constants of branches, and regions of autocast hold and end with the run."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule

import spyre_mlir  # noqa: F401 - registers the backend
from spyre_mlir.frontend.graph_runs import CapturedCalls, KnownNumbers
from spyre_mlir.frontend.torch_private import ENTER_AUTOCAST, EXIT_AUTOCAST

NUMBERS = torch.arange(6.0).reshape(2, 3)


def branch(sign: int) -> GraphModule:
    """Adds or takes away a number that it is given, doubled."""
    graph = Graph()
    x, number = graph.placeholder("x"), graph.placeholder("number")
    doubled = graph.call_function(operator.mul, (number, 2 * sign))
    graph.output((graph.call_function(torch.ops.aten.add.Tensor, (x, doubled)),))
    return GraphModule({}, graph)


def program() -> GraphModule:
    """`torch.cond` on a truth value, with a number among the operands."""
    graph = Graph()
    predicate, x, number = (graph.placeholder(name) for name in ("predicate", "x", "number"))
    owner = torch.nn.Module()
    owner.add_module("yes", branch(1))
    owner.add_module("no", branch(-1))
    arms = graph.get_attr("yes"), graph.get_attr("no")
    made = graph.call_function(torch.ops.higher_order.cond, (predicate, *arms, (x, number)))
    graph.output(made)
    return GraphModule(owner, graph)


def run(predicate: Any) -> Tensor:
    (made,) = KnownNumbers(program()).run(predicate, NUMBERS, 3)
    return made


def test_branches_have_numbers_as_constants() -> None:
    assert torch.equal(run(torch.tensor(True)), NUMBERS + 6)
    assert torch.equal(run(torch.tensor(False)), NUMBERS - 6)


def test_a_branch_that_a_truth_value_of_python_decides_is_followed() -> None:
    assert torch.equal(run(True), NUMBERS + 6)
    assert torch.equal(run(False), NUMBERS - 6)


X, W = (torch.randn(*shape, generator=torch.Generator().manual_seed(1)) for shape in ((3, 8), (8, 8)))


def converted(x: Tensor, w: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return (x @ w).float() * 3


def inner_region(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    with torch.autocast("cpu", torch.bfloat16):
        outer = x @ w
        with torch.autocast("cpu", enabled=False):
            inner = x @ w
        return outer, inner, (inner @ w).float(), x.half() @ w.half()


def behind(x: Tensor, w: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.float16):
        y = x @ w
    return y.float() @ w


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [converted, inner_region, behind])
def test_results_are_eagers(function: Callable[..., object], dynamic: bool) -> None:
    torch._dynamo.reset()
    made = torch.compile(function, backend="spyre", fullgraph=True, dynamic=dynamic, options={"numerics": "exact"})
    for x in (X, X[:2].contiguous()):
        # Halves are computed wide (decision 25), so eager's own rounding is the difference.
        torch.testing.assert_close(made(x, W), function(x, W), rtol=0.05, atol=0.1)


def in_region(body: Callable[[Tensor], Tensor]) -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    region = graph.call_function(ENTER_AUTOCAST, ("cpu", torch.bfloat16, True, None))
    result = graph.call_function(body, (x,))
    graph.call_function(EXIT_AUTOCAST, (region,))
    graph.output(result)
    return GraphModule({}, graph)


def test_no_region_outlasts_an_error() -> None:
    def fails(_: Tensor) -> Tensor:
        assert torch.is_autocast_enabled("cpu")
        raise ValueError("no such")

    with pytest.raises(ValueError, match="no such"):
        CapturedCalls(in_region(fails)).run(X)
    assert not torch.is_autocast_enabled("cpu")
    assert CapturedCalls(in_region(lambda x: x @ x.T)).run(X).dtype is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")
