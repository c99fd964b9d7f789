"""Sorts by counting: torch's stable order, whatever lies behind the elements of a call."""

from __future__ import annotations

from functools import partial
from math import inf, nan
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from spyre_mlir.frontend.data_sizes.masked.counted_sorts import CountedSort

FLOATS = torch.tensor([[2.0, nan, -inf, 2.0, 0.5, inf, nan, -3.0], [1.0, 1.0, 0.0, -0.0, 4.0, 1.0, inf, 2.0]])
INTEGERS = torch.tensor([3, -1, 3, 0, 7, -1, 9, 9])


def written(value: torch.Tensor, *, descending: bool) -> GraphModule:
    graph: Any = Graph()
    given, mask = graph.placeholder("x"), graph.placeholder("mask")

    def write(target: Any, *args: Any) -> Any:
        return graph.call_function(target, args)

    graph.output(CountedSort(partial(write), mask, value.dtype, descending).results(given))
    return GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "value", [FLOATS, INTEGERS, INTEGERS.int(), INTEGERS > 2], ids=["floats", "integers", "short integers", "truths"]
)
def test_the_order_is_that_of_torchs_stable_sort(value: torch.Tensor, descending: bool) -> None:
    model = written(value, descending=descending)
    for count in (8, 5, 1):
        values, places = model(value, torch.arange(8) < count)
        wanted = torch.sort(value[..., :count], stable=True, descending=descending)
        assert values.dtype is value.dtype
        assert torch.equal(places[..., :count], wanted.indices)
        known = ~wanted.values.isnan()
        assert torch.equal(values[..., :count][known], wanted.values[known])
        assert values[..., :count].isnan().equal(wanted.values.isnan())
