"""Sums of products by their letters: torch takes them apart, and what is left is one product and copies."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.choices import InputLayouts

# Equation, shapes of the operands, kernels where operands lie as these like it, and where they are placed: a transposed
# one is then copied to whole sticks, unless it has them, and laid out again.
CASES: dict[str, tuple[list[tuple[int, ...]], int, int]] = {
    "bhid,bhjd->bhij": ([(2, 4, 32, 64), (2, 4, 48, 64)], 2, 4),  # tests/lit/expressible/einsum.mlir
    "bij,jk->bik": ([(2, 3, 64), (64, 128)], 2, 2),
    "bij,bij->b": ([(2, 3, 64), (2, 3, 64)], 4, 6),
    "ij->ji": ([(3, 64)], 1, 2),
    "i,j->ij": ([(5,), (70,)], 1, 3),
}


class Einsum(torch.nn.Module):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, *operands: Tensor) -> Tensor:
        return torch.einsum(self.equation, *operands)


@pytest.mark.parametrize("inputs", ["free", "default"])
@pytest.mark.parametrize("equation", CASES)
def test_cost_in_kernels(equation: str, inputs: InputLayouts) -> None:
    shapes, free, placed = CASES[equation]
    generator = torch.Generator().manual_seed(0)
    operands = [torch.randn(shape, generator=generator) for shape in shapes]
    compiled = spyre_mlir.compile(Einsum(equation), operands, inputs=inputs)
    assert compiled.report().stages[-1].kernels == (placed if inputs == "default" else free)
    assert compiled.verify(*operands)
