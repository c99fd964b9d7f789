"""Graphs with a backward pass: one program per need of gradients, named after the captured graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, symbolic_trace

from spyre_mlir.torch_compile.graph import CapturedGraph
from spyre_mlir.torch_compile.history import Capture, compilations, forget
from spyre_mlir.torch_compile.training import TrainedGraph

NAMES = Capture("7/0", 70, "scaled")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    forget()
    with torch.enable_grad():
        yield
    forget()


def graph() -> TrainedGraph:
    def scaled(x: Any, y: Any) -> Any:
        return (x * y,)

    traced = symbolic_trace(scaled)
    return TrainedGraph(CapturedGraph(GraphModule({}, traced.graph), {"numerics": "exact"}, capture=NAMES))


def test_gradients_go_to_the_inputs_that_need_them() -> None:
    run, x = graph(), torch.tensor([1.0, 2.0], requires_grad=True)
    for factor in (torch.tensor([3.0, 5.0]), torch.tensor([7.0, 9.0])):
        run(x, factor)[0].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [10.0, 14.0]
    assert [(c.graph, c.function, c.capture) for c in compilations()] == [
        ("7/0", "scaled", 70),
        ("7/0", "scaled_backward", 70),
    ], "the second call ran the programs of the first"
    y = torch.tensor([3.0, 5.0], requires_grad=True)
    run(x, y)[0].sum().backward()
    assert y.grad is not None and y.grad.tolist() == [1.0, 2.0]
    assert len(compilations()) == 4
