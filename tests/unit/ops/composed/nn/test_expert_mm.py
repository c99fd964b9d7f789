"""Rows by the matrices of their experts, against one product after the other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from tests.fms_operators import multiplied

EXPERTS = torch.tensor([[0, 3], [2, 2], [1, 3], [3, 2], [0, 1]])


class Product(nn.Module):
    def __init__(self, each: int) -> None:
        super().__init__()
        self.each = each

    def forward(self, rows: Tensor, matrices: Tensor, experts: Tensor) -> Any:
        blocks = (torch.zeros(1, dtype=torch.int64) for _ in range(3))
        return torch.ops.moe.moe_mm(rows, matrices, experts, *blocks, self.each, 16)


@pytest.mark.parametrize("most", [None, 10 * 48])
@pytest.mark.parametrize("each", [1, 2])
def test_every_level(each: int, most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of tokens, or of tokens and experts, with all experts at once or one at a time."""
    if most is not None:
        monkeypatch.setattr("spyre_mlir.ops.composed.nn.grouped_mm._MOST_PRODUCTS", most)
    generator = torch.Generator().manual_seed(each)
    rows, matrices = (torch.randn(*s, generator=generator) for s in ((10 // each, 64), (4, 48, 64)))
    inputs = rows, matrices, EXPERTS
    compiled = spyre_mlir.compile(Product(each), inputs)
    assert not compiled.host_steps
    assert compiled.verify(*inputs)
    wanted = multiplied(*inputs)
    assert (compiled(*inputs) - wanted).abs().max() < 0.01 * wanted.abs().max()


def test_a_matrix_that_no_row_has_may_be_anything() -> None:
    rows, matrices = torch.ones(10, 64), torch.ones(4, 48, 64)
    matrices[3] = torch.nan
    experts = EXPERTS % 3
    compiled = spyre_mlir.compile(Product(1), (rows, matrices, experts))
    assert (compiled(rows, matrices, experts) == 64).all()
