"""Sums of products by their letters: torch takes them apart, and what is left is one product and copies."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import spyre_mlir

# Equation, shapes of the operands, kernels.
CASES: dict[str, tuple[list[tuple[int, ...]], int]] = {
    "bhid,bhjd->bhij": ([(2, 4, 32, 64), (2, 4, 48, 64)], 2),  # tests/lit/expressible/einsum.mlir
    "bij,jk->bik": ([(2, 3, 64), (64, 128)], 2),
    "bij,bij->b": ([(2, 3, 64), (2, 3, 64)], 5),
    "ij->ji": ([(3, 64)], 1),
    "i,j->ij": ([(5,), (70,)], 1),
}


class Einsum(torch.nn.Module):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, *operands: Tensor) -> Tensor:
        return torch.einsum(self.equation, *operands)


@pytest.mark.parametrize("equation", CASES)
def test_cost_in_kernels(equation: str) -> None:
    shapes, kernels = CASES[equation]
    generator = torch.Generator().manual_seed(0)
    operands = [torch.randn(shape, generator=generator) for shape in shapes]
    compiled = spyre_mlir.compile(Einsum(equation), operands)
    assert compiled.report().stages[-1].kernels == kernels
    assert compiled.verify(*operands)
