"""Integers that a graph only counts with stay out of its programs."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, symbolic_trace

from spyre_mlir import torch_compile
from spyre_mlir.torch_compile.captured.counts import Counts


def graph_of(function: Any, *examples: Any) -> GraphModule:
    """A graph with the examples and results that Dynamo notes."""
    graph = symbolic_trace(function)
    values: dict[Any, Any] = {}
    given = iter(examples)
    for node in graph.graph.nodes:
        if node.op == "output":
            break
        arguments = torch.fx.node.map_arg(node.args, values.__getitem__)
        values[node] = next(given) if node.op == "placeholder" else node.target(*arguments)
        node.meta["example_value"] = values[node]
    return graph


def test_a_count_between_inputs_and_results() -> None:
    counts = Counts.apart(graph_of(lambda n, x: (n + 1, x * 2, n + 1 + 3), 5, torch.ones(2)))
    assert (list(counts.taken), list(counts.places)) == ([1], [0, 2])
    x = torch.ones(3)
    (product,) = counts.graph(x)
    assert counts.given([8, x]) == [x]
    one, two, three = counts.completed([product], [8, x])
    assert (one, three) == (9, 12)
    assert two.tolist() == [2, 2, 2]


def test_what_reaches_a_tensor_stays() -> None:
    counts = Counts.apart(graph_of(lambda n, m, x: (n + 1, x * (n + 2), m), 5, 6, torch.ones(2)))
    assert (list(counts.taken), list(counts.places)) == ([0, 2], [0, 2])
    (product,) = counts.graph(5, torch.ones(1))
    assert counts.completed([product], [5, 7, torch.ones(1)]) == (6, product, 7)


def test_a_count_of_what_reaches_a_tensor() -> None:
    def count(n: Any, x: Any) -> Any:
        m = n + 1
        return x * m, m + 1

    counts = Counts.apart(graph_of(count, 5, torch.ones(2)))
    assert (list(counts.taken), list(counts.places)) == ([0, 1], [1])
    assert counts.completed(["x"], [5, torch.ones(1)]) == ("x", 7)


def test_a_graph_that_counts_nothing_is_itself() -> None:
    graph = graph_of(lambda x: (x + 1,), torch.ones(2))
    counts = Counts.apart(graph)
    assert counts.graph is graph
    assert counts.completed([3], [1]) == (3,)


def test_an_input_that_nobody_reads_is_not_taken() -> None:
    counts = Counts.apart(graph_of(lambda n, x: (x + 1,), 5, torch.ones(2)))
    assert list(counts.taken) == [1]
    assert counts.completed([3], [5, 1]) == (3,)


class Window:
    """What a cache counts: its tokens."""

    def __init__(self) -> None:
        self.count = 0


def step(x: torch.Tensor, window: Window) -> torch.Tensor:
    full = window.count >= 3
    window.count += 1
    return x.roll(1, 0) if full else x * 2


def test_every_count_has_the_same_program() -> None:
    torch.compiler.reset()
    torch_compile.forget()
    window, x = Window(), torch.arange(4.0)
    compiled = torch.compile(step, backend=torch_compile.spyre, options={"numerics": "exact"})
    with torch.no_grad():
        found = [compiled(x, window).tolist() for _ in range(8)]
    assert found == [[0, 2, 4, 6]] * 3 + [[3, 0, 1, 2]] * 5
    assert window.count == 8
    assert len(torch_compile.compilations()) == 3  # to Dynamo the first count is a number, and the next ones are not


def test_weights_can_be_swapped_afterwards() -> None:
    torch.compiler.reset()
    layer, window = torch.nn.Linear(4, 4), Window()
    compiled = torch.compile(
        lambda x: step(layer(x), window), backend=torch_compile.spyre, options={"numerics": "exact"}
    )
    with torch.no_grad():
        for _ in range(2):
            compiled(torch.ones(2, 4))
    torch.utils.swap_tensors(layer.weight, torch.nn.Parameter(torch.zeros(4, 4)))
    assert not layer.weight.any()
