"""What fills padding, by type."""

from __future__ import annotations

from math import inf

import pytest
import torch

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, argument_of
from spyre_mlir.frontend.torch_private import free_unbacked_symbols
from tests.unit.frontend.data_sizes.programs import masked


@pytest.mark.parametrize(
    ("dtype", "least", "greatest"),
    [
        (torch.float32, -inf, inf),
        (torch.int64, -(2**31), 2**31 - 1),
        (torch.int8, -128, 127),
        (torch.uint8, 0, 255),
        (torch.bool, False, True),
    ],
)
def test_an_infinity_is_the_last_number_of_a_type(dtype: torch.dtype, least: float, greatest: float) -> None:
    piece = masked(lambda y: (y + 1,))
    graph = piece.model._calls.graph
    given = graph.find_nodes(op="placeholder")[0]
    (symbol,) = free_unbacked_symbols(given.meta["val"])
    with graph.inserting_before():
        mask = graph.placeholder("mask")
    masking = Masking(graph, {symbol: mask}, {})
    (call,) = [node for node in graph.nodes if node.op == "call_function"]
    given.meta["val"] = given.meta["val"].to(dtype)
    assert [masking.filled(call, given, {0: symbol}, number).args[2] for number in (-inf, inf)] == [least, greatest]


def test_an_argument_that_is_not_given_has_its_default() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    call = graph.call_function(torch.ops.aten.topk.default, (x, 3), {"largest": False})
    assert [argument_of(call, name) for name in ("k", "dim", "largest", "sorted", "other")] == [
        3,
        -1,
        False,
        True,
        None,
    ]
