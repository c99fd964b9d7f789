"""Branches in a masked piece: both are computed, and one is selected; not where a branch has a check of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.data_sizes.inlined_branches import inline_branches
from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

aten = torch.ops.aten
ROWS = torch.cat([X + 2, X * 3])

BRANCHES: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "sums": lambda y: torch.cond(
        y.sum() > 20, lambda a: (a.sum(0), a.exp().sum()), lambda a: (a[:, 0] @ a, a.abs().sum()), (y,)
    ),
    "behind": lambda y: (torch.cond(y.sum() > 20, lambda a: a + 1, lambda a: a - 1, (y,)).softmax(0),),
    "infinities": lambda y: (torch.cond(y.sum() > 0, lambda a: a.abs(), lambda a: a / 0.0, (y,)).sum(0),),
    "integers": lambda y: (torch.cond(y.sum() > 20, lambda a: a.argsort(0), lambda a: (a * 3).long(), (y,)),),
}


@pytest.fixture(autouse=True)
def _without_graphs_of_other_tests() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("branches", BRANCHES)
def test_a_branch_reads_no_padding(branches: str) -> None:
    for count in (6, 3):
        check_masked(BRANCHES[branches], ROWS[:count])


def branch(write: Callable[[Graph, Node], object]) -> GraphModule:
    """A branch that gives its operand twice, and has another call."""
    graph = Graph()
    rows = graph.placeholder("rows")
    write(graph, rows)
    graph.output((graph.call_function(aten.add.Tensor, (rows, rows)),))
    return GraphModule(nn.Module(), graph)


def conditional(write: Callable[[Graph, Node], object]) -> tuple[Graph, nn.Module]:
    root, graph = nn.Module(), Graph()
    predicate, rows = graph.placeholder("predicate"), graph.placeholder("rows")
    for name in ("yes", "no"):
        root.add_module(name, branch(write))
    graphs = [graph.get_attr(name) for name in ("yes", "no")]
    made = graph.call_function(torch.ops.higher_order.cond, (predicate, *graphs, (rows,)))
    graph.output((graph.call_function(operator.getitem, (made, 0)),))
    return graph, root


def test_branches_with_checks_of_the_model_and_with_draws_stay() -> None:
    calls: list[tuple[Callable[[Graph, Node], object], bool]] = [
        (lambda g, rows: g.call_function(aten.mul.Tensor, (rows, 2)), True),
        (lambda g, rows: g.call_function(aten._assert_async.msg, (rows, "no")), False),
        (lambda g, rows: g.call_function(aten.bernoulli.default, (rows,)), False),
        (lambda g, rows: g.call_function(aten.mul_.Tensor, (rows, 2)), False),
    ]
    for write, inlined in calls:
        graph, root = conditional(write)
        assert inline_branches(graph, root) == inlined
        assert bool(graph.find_nodes(op="call_function", target=aten.where.self)) == inlined
        graph.lint()


def test_a_result_of_a_size_that_branches_make_is_refused() -> None:
    def longer(y: Tensor) -> tuple[Tensor, ...]:
        return (torch.cond(y.sum() > 20, lambda a: torch.cat([a, a]), lambda a: torch.cat([a, a * 2]), (y,)),)

    with pytest.raises(UnsupportedError, match="the size of a result does not follow from those that the part begins"):
        masked(longer)
