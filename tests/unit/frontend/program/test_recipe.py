"""Constants that follow from buffers: computed when the buffers have values, and equal when they say the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch._ops import OpOverload
from torch.fx import Graph, Node

from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend.capture.folding.constant_folding import Folded
from spyre_mlir.frontend.program.recipe import Recipe

aten = torch.ops.aten


def angles(*, scale: float = 2.0, buffer: str = "rotary.inv_freq") -> Recipe:
    """Positions times the frequencies of a rotary table, scaled."""
    graph = Graph()
    frequencies = graph.placeholder("frequencies")
    positions = graph.call_function(aten.arange.default, (3,), {"device": torch.device("meta")})
    column = graph.call_function(aten.unsqueeze.default, (positions, 1))
    product = graph.call_function(aten.mul.Tensor, (column, frequencies))
    scaled = graph.call_function(aten.mul.Tensor, (product, scale))
    return Folded(list[Node](graph.nodes), {}, {frequencies: buffer}).recipe(scaled)


def test_the_value_follows_from_the_buffers_by_name() -> None:
    given = {"rotary.inv_freq": torch.tensor([1.0, 0.5]), "another": torch.tensor([9.0, 9.0])}
    assert angles().value(given).tolist() == [[0, 0], [2, 1], [4, 2]]
    # Nothing is kept from one model to the next.
    assert angles().value({"rotary.inv_freq": torch.tensor([3.0])}).tolist() == [[0], [6], [12]]


def test_the_value_in_another_type_and_without_repetitions() -> None:
    recipe = angles().of_type(torch.int32)
    given = {"rotary.inv_freq": torch.tensor([1.0, 1.0])}
    assert recipe.value(given).dtype is torch.int32
    assert replace(recipe, repeated=(False, True)).value(given).tolist() == [[0], [2], [4]]


def test_the_value_is_no_part_of_the_memory_of_a_buffer() -> None:
    graph = Graph()
    table = graph.placeholder("table")
    row = graph.call_function(aten.select.int, (table, 0, 1))
    recipe = Folded([table, row], {}, {table: "table"}).recipe(row)
    given = torch.arange(6.0).reshape(3, 2)
    value = recipe.value({"table": given})
    given.zero_()
    assert value.tolist() == [2, 3]
    assert value.untyped_storage().nbytes() == 8


@pytest.mark.parametrize(
    ("op", "before", "number", "expected"),
    [
        (aten.eq.Tensor, [3, 5, 7], 5, [False, True, False]),
        (aten.lt.Tensor, [0, 1, 2], 0.5, [True, False, False]),
        (aten.logical_and.default, [0, 4, 0], 2, [False, True, False]),
        (aten.minimum.default, [3, 5, 7], 4, [3, 4, 4]),
        (aten.minimum.default, [3.0, 5.0], 4.5, [3.0, 4.5]),
        (aten.prelu.default, [-1.0, 2.0], 3, [-3.0, 2.0]),  # takes tensors of one type alone
    ],
)
def test_a_number_in_place_of_a_tensor_keeps_its_value(
    op: OpOverload, before: list[float], number: float, expected: list[float]
) -> None:
    graph = Graph()
    table = graph.placeholder("table")
    made = graph.call_function(op, (table, number))
    made.meta["val"] = torch.tensor(expected, device="meta")
    recipe = Folded([table, made], {}, {table: "table"}).recipe(made)
    assert recipe.value({"table": torch.tensor(before)}).tolist() == expected


def test_equal_recipes_have_equal_keys() -> None:
    assert angles().key == angles().key
    different = [angles(), angles(scale=3.0), angles(buffer="other.inv_freq"), angles().of_type(torch.float16)]
    different.append(replace(angles(), repeated=(True, False)))
    assert len({recipe.key for recipe in different}) == 5


def test_what_torch_refuses_is_an_error_with_a_place() -> None:
    graph = Graph()
    none = graph.call_function(aten.zeros.default, ([0],))
    largest = graph.call_function(aten.max.default, (none,))
    folded = Folded(list[Node](graph.nodes), {})
    with pytest.raises(ImportProgramError, match=r"aten::max refuses the constants that it reads: max\(\)") as no:
        folded.value(largest)
    assert no.value.hint == "eager torch refuses them, too"
