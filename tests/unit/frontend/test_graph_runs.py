"""Runs of graphs whose control flow is given numbers of Python: as the same graph with the numbers in it."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule

from spyre_mlir.frontend.graph_runs import KnownNumbers

X = torch.arange(6.0).reshape(2, 3)


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
    (made,) = KnownNumbers(program()).run(predicate, X, 3)
    return made


def test_branches_have_numbers_as_constants() -> None:
    assert torch.equal(run(torch.tensor(True)), X + 6)
    assert torch.equal(run(torch.tensor(False)), X - 6)


def test_a_branch_that_a_truth_value_of_python_decides_is_followed() -> None:
    assert torch.equal(run(True), X + 6)
    assert torch.equal(run(False), X - 6)
