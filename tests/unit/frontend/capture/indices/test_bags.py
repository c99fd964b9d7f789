"""Bags that are folded without their last offset and with weights one behind the other, as eager does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as f

import spyre_mlir
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.capture.indices.bags import plain_bags
from tests.functions import FunctionModel

ROWS = torch.linspace(-1.0, 1.0, 21).reshape(7, 3)
INDICES, OFFSETS = torch.tensor([1, 2, 2, 4, 5, 6]), torch.tensor([0, 2, 3, 3, 6])


@pytest.mark.parametrize(("mode", "padding"), [("sum", None), ("mean", 2), ("max", 2)])
def test_bags_are_those_of_eager(mode: str, padding: int | None) -> None:
    def bags(indices: Tensor, offsets: Tensor) -> Tensor:
        return f.embedding_bag(indices, ROWS, offsets, mode=mode, include_last_offset=True, padding_idx=padding)

    compiled = spyre_mlir.compile(FunctionModel(bags), (INDICES, OFFSETS), numerics="exact")
    torch.testing.assert_close(compiled(INDICES, OFFSETS), bags(INDICES, OFFSETS))


class Learned(torch.nn.Module):
    """Rows that require gradients, of which torch traces another operator."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.nn.EmbeddingBag.from_pretrained(ROWS, freeze=False, mode="sum")

    def forward(self, weights: Tensor) -> Tensor:
        return self.rows(INDICES, OFFSETS[:-1], weights)


@pytest.mark.parametrize("is_learned", [False, True])
def test_weights_with_gaps_between_them_are_copied(is_learned: bool) -> None:
    def bags(weights: Tensor) -> Tensor:
        return f.embedding_bag(INDICES, ROWS, OFFSETS[:-1], mode="sum", per_sample_weights=weights)

    by = torch.linspace(0.5, 2.0, 18).reshape(6, 3)[:, 1]
    compiled = spyre_mlir.compile(Learned() if is_learned else FunctionModel(bags), (by,), numerics="exact")
    assert "spyre.loop.host" not in compiled.mlir("spyre.loop")
    torch.testing.assert_close(compiled(by), bags(by))


@pytest.mark.parametrize("several", [False, True])
def test_where_other_results_are_read_the_call_stays(several: bool) -> None:
    def bags(rows: Tensor) -> Any:
        arguments = (INDICES, OFFSETS, False, 0, False, None, True)
        made = torch.ops.aten._embedding_bag_forward_only(rows, *arguments)
        return made[:3] if several else made[0]

    program = plain_bags(decompose(export_model(FunctionModel(bags), (ROWS,), {})))
    (call,) = (node for node in program.graph.nodes if "_embedding_bag" in str(node.target))
    assert (call.args[7:8] == (True,)) is several
