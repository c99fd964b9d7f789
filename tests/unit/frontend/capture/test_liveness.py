"""Nodes that the results need, and nodes that only rename a value, in graphs worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph

from spyre_mlir.frontend.capture.liveness import find_aliases, live_nodes
from tests.unit.frontend.graphs import calls, placeholders, traced

X = torch.arange(6.0).reshape(2, 3)
aten = torch.ops.aten


def test_placeholders_and_what_the_output_needs_are_live_in_order() -> None:
    graph = Graph()
    x, unused = graph.placeholder("x"), graph.placeholder("unused")
    first = graph.call_function(aten.relu.default, (x,))
    check = graph.call_function(aten.sum.default, (first,))
    graph.call_function(aten._assert_async.default, (check,))
    second = graph.call_function(aten.add.Tensor, (first, first))
    graph.output((second, x))
    assert live_nodes(list(graph.nodes)) == [x, unused, first, second]


@pytest.mark.parametrize(
    ("function", "renames"),
    [
        (lambda x: aten.alias(x), True),
        (lambda x: aten.lift_fresh_copy(x), True),
        (lambda x: x + 1, False),
        (lambda x: x.clone(), False),
        (lambda x: aten._to_copy(x, dtype=torch.float32), True),
        (lambda x: aten._to_copy(x, memory_format=torch.preserve_format), True),
        (lambda x: aten._to_copy(x, memory_format=torch.contiguous_format), False),
        (lambda x: aten._to_copy(x, dtype=torch.float16), False),
    ],
)
def test_renames_give_their_operand(function: Callable[..., Any], renames: bool) -> None:
    graph = traced(function, X)
    (node,), (x,) = calls(graph), placeholders(graph)
    assert find_aliases(list(graph.nodes)) == ({node: x} if renames else {})


@pytest.mark.parametrize("target", [aten.detach.default, aten.lift_fresh.default])
def test_constants_are_renamed(target: Any) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(target, (x,))
    assert find_aliases([x, node]) == {node: x}


@pytest.mark.parametrize(
    ("probability", "training", "renames"), [(0.5, False, True), (0.0, True, True), (0.5, True, False)]
)
def test_dropout_renames_where_it_drops_nothing(probability: float, training: bool, renames: bool) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(aten.dropout.default, (x, probability, training))
    assert find_aliases([x, node]) == ({node: x} if renames else {})


@pytest.mark.parametrize(
    ("new", "same"), [(torch.ones(2, 3), True), (torch.ones(3), False), (torch.ones(2, 3).half(), False)]
)
def test_a_copy_of_the_same_form_is_what_is_copied(new: torch.Tensor, same: bool) -> None:
    graph = traced(lambda old, new: aten.copy(old, new), X, new)
    (node,), (_, source) = calls(graph), placeholders(graph)
    assert find_aliases(list(graph.nodes)) == ({node: source} if same else {})


def test_a_copied_number_is_no_tensor() -> None:
    graph = Graph()
    x, number = graph.placeholder("x"), graph.placeholder("number")
    node = graph.call_function(aten.copy.default, (x, number))
    node.meta["val"], number.meta["val"] = X, 2.0
    assert find_aliases([x, number, node]) == {}
