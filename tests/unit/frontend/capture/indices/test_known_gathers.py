"""Gathers of weights at known places: which nodes torch computes once, and which it leaves to calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Node

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.constant_folding import Folded
from spyre_mlir.hw.weight_room import MORE_AT_LEAST
from tests.unit.frontend.graphs import calls, placeholders, traced

X, TABLE = torch.ones(3, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
PLACES = torch.tensor([1, 0, 1])


def folded(function: Callable[..., Any], *inputs: Tensor, weight: Tensor = TABLE) -> tuple[Folded, list[Node]]:
    """Folds a graph of inputs and a weight, which is last."""
    graph = traced(function, *inputs, weight)
    found = Folded([n for n in graph.nodes if n.op != "output"], {}, weights={placeholders(graph)[-1]: "table"})
    return found, calls(graph)


@pytest.mark.parametrize(
    "gather",
    [
        lambda table: torch.nn.functional.embedding(torch.arange(2), table),
        lambda table: table[torch.arange(2)],
        lambda table: table.index_select(1, torch.arange(2)),
        lambda table: table.gather(0, torch.zeros(2, 2, dtype=torch.int64)),
        lambda table: table.take(torch.arange(2)),
    ],
)
def test_a_gather_at_known_places_is_computed_when_the_weight_has_a_value(gather: Callable[[Tensor], Tensor]) -> None:
    found, nodes = folded(lambda x, table: x[:2] * gather(table), X)
    made = next(n for n in nodes if n in found and found.by_recipe(n))
    assert not found.known(made)
    assert found.recipe(made).weight_leaves == {"table"}
    other = TABLE * 7
    assert torch.equal(found.recipe(made).value({"table": other}), gather(other))
    assert nodes[-1] not in found


def test_what_follows_from_a_gather_is_part_of_it() -> None:
    def bias(table: Tensor) -> Tensor:
        return ((table * 2)[torch.arange(3) % 2].t() + table.sum()).exp()

    found, nodes = folded(lambda x, table: x.t() * bias(table), X)
    last = nodes[-2]
    assert torch.equal(found.recipe(last).value({"table": TABLE}), bias(TABLE))
    assert found.recipe(last).leaves == ("table",)


def test_what_gathers_nothing_is_left_to_the_layout_of_weights() -> None:
    found, nodes = folded(lambda x, table: x @ (table.t() * 2), X)
    assert not any(n in found for n in nodes)


def test_places_of_a_call_are_gathered_in_the_call() -> None:
    found, nodes = folded(lambda x, index, table: x + table[index], X, PLACES)
    assert not any(n in found for n in nodes)


def test_a_value_beyond_the_room_is_gathered_in_the_call_and_what_it_is_made_of_ahead() -> None:
    rows = MORE_AT_LEAST // (2 * 4) + 1

    def fits(table: Tensor) -> Tensor:
        return table[torch.zeros(rows - 1, dtype=torch.int64)]

    found, nodes = folded(lambda x, table: x[0] + fits(table), X)
    assert nodes[-2] in found
    found, nodes = folded(lambda x, table: x[0] + table[torch.zeros(rows, dtype=torch.int64)], X)
    assert not any(found.by_recipe(n) for n in nodes)
    found, nodes = folded(lambda x, table: x[0] + (table[torch.arange(2)][:, None] + torch.zeros(rows, 2)), X)
    by_recipe = [n for n in nodes if found.by_recipe(n)]
    assert by_recipe and all(n.meta["val"].numel() == 4 for n in by_recipe)


def test_the_same_gather_in_every_layer_takes_room_once() -> None:
    rows = MORE_AT_LEAST // (2 * 4)

    def layers(x: Tensor, table: Tensor) -> Tensor:
        for _ in range(3):
            x = x[:1] + table[torch.zeros(rows, dtype=torch.int64)].clone()
        return x

    found, nodes = folded(layers, X)
    assert sum(n in found for n in nodes if n.target is torch.ops.aten.clone.default) == 3


def test_repeated_elements_take_room_once() -> None:
    found, nodes = folded(lambda x, table: x[0] + table[torch.arange(2)][:1].expand(MORE_AT_LEAST, 2), X)
    assert nodes[-2] in found


def test_an_index_that_names_no_entry_is_an_error_of_the_weights_with_its_place() -> None:
    found, nodes = folded(lambda x, table: x + table[torch.arange(3)], X)
    made = next(n for n in nodes if found.by_recipe(n))
    with pytest.raises(InputError, match="the constant 'index' from table: index 2 is out of bounds"):
        found.recipe(made).value({"table": TABLE})
