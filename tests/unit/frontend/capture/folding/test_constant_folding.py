"""Folding at import: which nodes no call can change, and the values they have."""

from __future__ import annotations

import operator

import pytest
import torch
from torch.fx import Graph, Node

from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend.capture.folding.constant_folding import Folded, is_causal_mask
from tests.unit.frontend.graphs import calls, placeholders, traced

X, TABLE = torch.ones(3), torch.tensor([1.0, 2.0, 3.0])
aten = torch.ops.aten


def folded(graph: Graph, *known: torch.Tensor) -> Folded:
    """Folds a graph whose last placeholders have these values."""
    inputs = placeholders(graph)
    leaves = dict(zip(inputs[len(inputs) - len(known) :], known, strict=True))
    return Folded(iter([n for n in graph.nodes if n.op != "output"]), leaves)


def test_what_reads_known_tensors_only_is_computed() -> None:
    graph = traced(lambda x, table: x + (table * 2 + 1), X, TABLE)
    found, (double, more, total) = folded(graph, TABLE), calls(graph)
    assert [n in found for n in (double, more, total)] == [True, True, False]
    assert [found.known(n) for n in (double, more, total)] == [True, True, False]
    assert found.value(more).tolist() == [3, 5, 7]
    assert found.value(double).tolist() == [2, 4, 6]


def test_a_known_placeholder_is_known_but_not_folded() -> None:
    graph = traced(lambda x, table: x + table, X, TABLE)
    found, (x, table) = folded(graph, TABLE), placeholders(graph)
    assert (found.known(table), table in found) == (True, False)
    assert (found.known(x), x in found) == (False, False)
    assert found.value(table) is TABLE


def test_what_follows_from_a_buffer_is_computed_later() -> None:
    graph = traced(lambda x, table: x + (table * torch.arange(3) + 1), X, TABLE)
    _, buffer = placeholders(graph)
    found = Folded([n for n in graph.nodes if n.op != "output"], {}, {buffer: "table"})
    ranged, scaled, more, total = calls(graph)
    assert [n in found for n in (buffer, ranged, scaled, more, total)] == [False, True, True, True, False]
    assert [found.known(n) for n in (buffer, ranged, scaled, more)] == [False, True, False, False]
    assert [found.by_recipe(n) for n in (buffer, ranged, scaled, more, total)] == [True, False, True, True, False]
    assert found.recipe(more).value({"table": TABLE}).tolist() == [1, 3, 7]


def test_a_part_of_a_buffer_without_elements_is_known() -> None:
    graph = traced(lambda table: table[:0] * 2, TABLE)
    (buffer,) = placeholders(graph)
    found = Folded([n for n in graph.nodes if n.op != "output"], {}, {buffer: "table"})
    assert all(found.known(n) and not found.by_recipe(n) for n in calls(graph))


def test_memory_of_a_buffer_is_not_walked_ahead() -> None:
    graph = traced(lambda table: table.as_strided((2,), (2,)), TABLE)
    (buffer,) = placeholders(graph)
    assert calls(graph)[0] not in Folded(list(graph.nodes), {}, {buffer: "table"})


def test_one_part_of_several_results_is_a_value() -> None:
    graph = traced(lambda table: table.max(0).values, TABLE)
    found, (both, part, *_) = folded(graph, TABLE), calls(graph)
    assert part.target is operator.getitem
    assert found.known(part)
    assert found.value(part).item() == 3
    with pytest.raises(TypeError, match="node max_1 has tuple as its value, not a tensor"):
        found.value(both)


def test_random_numbers_and_writes_are_not_folded() -> None:
    graph = traced(lambda table: torch.rand_like(table) + table.add_(1) + torch.bernoulli(table), TABLE)
    found = folded(graph, TABLE)
    assert not any(found.known(n) for n in calls(graph))


def test_what_is_no_operator_is_not_folded() -> None:
    graph = Graph()
    made = graph.call_function(torch.ones, ((2,),))
    assert not Folded([made], {}).known(made)


def test_the_host_makes_what_was_made_elsewhere() -> None:
    graph = Graph()
    made = graph.call_function(aten.arange.default, (3,), {"device": torch.device("meta")})
    assert Folded([made], {}).value(made).tolist() == [0, 1, 2]


@pytest.mark.parametrize("target", [aten.empty.memory_format, aten.new_empty.default])
def test_what_nobody_set_is_zero(target: object) -> None:
    graph = Graph()
    table = graph.placeholder("table")
    first = () if target is aten.empty.memory_format else (table,)
    made = graph.call_function(target, (*first, [64, 64]))
    assert not Folded([table, made], {table: TABLE}).value(made).any()


def test_zeros_of_derivatives_have_memory() -> None:
    graph = traced(lambda x: aten._efficientzerotensor([2, 3]), X)
    (zeros,) = calls(graph)
    assert folded(graph).value(zeros).numpy().tolist() == [[0] * 3] * 2


def test_values_need_no_gradients() -> None:
    graph = traced(lambda table: table * 2, TABLE)
    found = folded(graph, torch.nn.Parameter(TABLE))
    assert not found.value(calls(graph)[0]).requires_grad


def test_a_tensor_without_elements_is_known_whatever_it_is_made_of() -> None:
    graph = traced(lambda x: x[:0].to(torch.int16).reshape(2, 0), X)
    found, nodes = folded(graph), calls(graph)
    assert all(n in found for n in nodes)
    assert (found.value(nodes[-1]).shape, found.value(nodes[-1]).dtype) == ((2, 0), torch.int16)


@pytest.mark.parametrize("reduction", ["max", "min", "median", "mode"])
def test_the_largest_of_no_row_is_refused_as_torch_does(reduction: str) -> None:
    graph = traced(lambda x: getattr(x, reduction)(0), torch.empty(0, 0))
    with pytest.raises(ImportProgramError, match=rf"aten::{reduction} refuses .* dim 0 to have non-zero size"):
        folded(graph)
    assert folded(traced(lambda x: getattr(x, reduction)(1), torch.empty(0, 3)))


def test_an_input_without_elements_is_known_but_not_folded() -> None:
    graph = traced(lambda x: torch.cat([x, torch.ones(2)]), torch.empty(0))
    (x,) = placeholders(graph)
    found = folded(graph)
    assert (found.known(x), x in found) == (True, False)
    assert found.value(calls(graph)[-1]).tolist() == [1, 1]


def test_memory_behind_a_tensor_without_elements_is_not_known() -> None:
    graph = traced(lambda x: x[:0].as_strided((2,), (1,)), X)
    found, (empty, walk) = folded(graph), calls(graph)
    assert (found.known(empty), found.known(walk)) == (True, False)
    graph = traced(lambda table: table.as_strided((2,), (2,)), TABLE)
    assert folded(graph, TABLE).value(calls(graph)[0]).tolist() == [1, 3]


def test_a_long_chain_is_computed_without_recursion() -> None:
    graph = Graph()
    node: Node = graph.placeholder("table")
    nodes = [node]
    for _ in range(2000):
        nodes.append(node := graph.call_function(aten.add.Tensor, (node, 1)))
    assert Folded(nodes, {nodes[0]: torch.tensor([0])}).value(node).item() == 2000


LOWER = torch.tensor([[True, False, False], [True, True, False]])


@pytest.mark.parametrize(
    ("mask", "causal"),
    [
        (LOWER, True),
        (LOWER.expand(4, 2, 3), True),
        (torch.stack([LOWER, ~LOWER]), False),
        (LOWER.int(), False),
        (LOWER[0], False),
        (~LOWER, False),
        (LOWER.t(), False),
        (torch.ones(2, 2, dtype=torch.bool), False),
        (torch.ones(2, 1, dtype=torch.bool), True),
    ],
)
def test_a_causal_mask_keeps_what_is_on_and_below_the_diagonal(mask: torch.Tensor, causal: bool) -> None:
    assert is_causal_mask(mask) is causal
