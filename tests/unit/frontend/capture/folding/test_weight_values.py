"""Values that follow from weights alone: which nodes torch computes once, and which it leaves to calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Node

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.folding.constant_folding import Folded
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


@pytest.mark.parametrize(
    "move",
    [
        lambda table: table.t(),
        lambda table: table.reshape(4, 1)[1:3].clone(),
        lambda table: table.half().float(),
        lambda table: torch.nn.functional.pad(table, (0, 1))[:, 1:],
        lambda table: table.unbind(1)[1][:, None].repeat(1, 2),
    ],
)
def test_what_only_moves_elements_is_left_to_the_layout_of_weights(move: Callable[[Tensor], Tensor]) -> None:
    found, nodes = folded(lambda x, table: x @ move(table), X)
    assert not any(n in found for n in nodes)


@pytest.mark.parametrize(
    "compute",
    [
        lambda table: table.t() * 2,
        lambda table: table / table.norm(dim=1, keepdim=True),
        lambda table: torch._weight_norm(table, table[:, :1] + 1, 0),
        lambda table: torch.cat([table, table.t()], 1),
        lambda table: torch.where(torch.eye(2) > 0, table, 0.0).t().contiguous(),
    ],
)
def test_what_is_computed_of_weights_alone_is_computed_when_they_have_values(
    compute: Callable[[Tensor], Tensor],
) -> None:
    found, nodes = folded(lambda x, table: x @ compute(table), X)
    other = TABLE * 7 - 30
    product = next(n for n in nodes if n.target is torch.ops.aten.mm.default)
    made = product.all_input_nodes[1]
    assert torch.equal(found.recipe(made).value({"table": other}), compute(other))
    assert made in found and product not in found


LARGE = torch.ones(MORE_AT_LEAST // 4 + 1, 2, dtype=torch.half)  # in bytes, a little more than the room


def test_a_value_that_replaces_its_weight_takes_no_room() -> None:
    found, nodes = folded(lambda x, table: x[0] + table.exp(), X, weight=LARGE)
    assert nodes[-2] in found
    found, nodes = folded(lambda x, table: x[0] + table.exp() * table[:1], X, weight=LARGE)
    assert nodes[-2] in found, "all readers of the weight are ahead of the call"
    found, nodes = folded(lambda x, table: (x[0] + table.exp()) * table, X, weight=LARGE)
    assert not any(n in found for n in nodes), "the call reads the weight too"
    found, nodes = folded(lambda x, table: x[0] + table.exp() + table.t().neg().t(), X, weight=LARGE)
    assert sum(n in found for n in nodes) == 0, "two values for one weight"


@pytest.mark.parametrize("count", [2, 3])
def test_values_of_one_kind_are_made_ahead_all_or_none(count: int) -> None:
    half = torch.ones(MORE_AT_LEAST // 8, 2, dtype=torch.half)

    def layers(x: Tensor, table: Tensor) -> Tensor:
        for layer in range(count):
            x = (x[:1] + (table * layer).exp()) * table
        return x

    found, nodes = folded(layers, X, weight=half)
    assert [n in found for n in nodes if n.target is torch.ops.aten.exp.default] == [count == 2] * count


@pytest.mark.parametrize("narrow", [torch.int8, torch.uint8, torch.float8_e4m3fn, torch.int32])
def test_a_weight_of_few_bits_stays_what_it_is(narrow: torch.dtype) -> None:
    weight = torch.ones(16, 2).to(narrow)
    found, nodes = folded(lambda x, table: x @ (table.half() * 2).t().float(), X, weight=weight)
    assert not any(n in found for n in nodes)
    if not narrow.is_floating_point:
        found, nodes = folded(lambda x, table: x @ (table - 1).t().float(), X, weight=weight)
        assert not any(n in found for n in nodes)
    found, nodes = folded(lambda x, table: x @ (table.half() * 2).t().float() + table.half().sum(), X, weight=weight)
    assert [n.target for n in nodes if n in found][-1:] == [torch.ops.aten.sum.default]


def test_places_of_a_call_are_gathered_in_the_call() -> None:
    found, nodes = folded(lambda x, index, table: x + table[index], X, PLACES)
    assert not any(n in found for n in nodes)


def test_a_value_beyond_the_room_is_gathered_in_the_call_and_what_it_is_made_of_ahead() -> None:
    rows = MORE_AT_LEAST // (2 * 4) + len(TABLE) + 1  # as many rows as the table has are in its place

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
    found, nodes = folded(lambda x, table: x[0] + table[torch.arange(2)][:1].expand(MORE_AT_LEAST, 2)[1:], X)
    assert nodes[-2] in found


def test_an_index_that_names_no_entry_is_an_error_of_the_weights_with_its_place() -> None:
    found, nodes = folded(lambda x, table: x + table[torch.arange(3)], X)
    made = next(n for n in nodes if found.by_recipe(n))
    with pytest.raises(InputError, match="the constant 'index' from table: index 2 is out of bounds"):
        found.recipe(made).value({"table": TABLE})
