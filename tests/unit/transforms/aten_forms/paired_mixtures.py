"""Mixtures of experts as ibm-fms computes them: products name the expert of each row, in the order of tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.fms_operators import LIBRARIES

assert LIBRARIES


class PairedMixture(nn.Module):
    """Experts of two matrices, with biases or without, of which a router's numbers choose some for each token."""

    def __init__(self, experts: int = 5, width: int = 8, inner: int = 8, choices: int = 2, *, biased: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(experts)

        def drawn(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator) / shape[-1] ** 0.5, requires_grad=False)

        self.choices, self.biased = choices, biased
        self.w13, self.w13_bias = drawn(experts, 2 * inner, width), drawn(experts, 2 * inner)
        self.w2, self.w2_bias = drawn(experts, width, inner), drawn(experts, width)

    def _product(self, rows: Tensor, matrices: Tensor, bias: Tensor, chosen: Tensor, each: int) -> Tensor:
        blocks = (torch.zeros(1, dtype=torch.int64) for _ in range(3))
        made = torch.ops.moe.moe_mm(rows, matrices, chosen, *blocks, each, 16)
        if not self.biased:
            return made
        flat = made.clone().view(-1, made.shape[-1])
        flat += bias[chosen.view(-1)]
        return flat.view(made.shape)

    def mixed(self, x: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        gate, up = self._product(x, self.w13, self.w13_bias, chosen, self.choices).flatten(0, 1).chunk(2, 1)
        rows = nn.functional.silu(gate) * up
        return torch.einsum("tai,ta->ti", self._product(rows, self.w2, self.w2_bias, chosen, 1), weights)

    def forward(self, x: Tensor, scores: Tensor) -> Tensor:
        weights, chosen = torch.topk(scores, self.choices, -1)
        return self.mixed(x, chosen, weights)


class PairedGiven(PairedMixture):
    """Experts that the caller chooses, who may choose one twice."""

    def forward(self, x: Tensor, scores: Tensor) -> Tensor:
        chosen = scores[:, : self.choices].long().clamp(0, self.w2.shape[0] - 1)
        return self.mixed(x, chosen, scores[:, : self.choices])


def paired_inputs(tokens: int = 7, experts: int = 5, width: int = 8) -> tuple[Tensor, Tensor]:
    """Rows of tokens, and the numbers of a router."""
    generator = torch.Generator().manual_seed(tokens)
    return torch.randn(tokens, width, generator=generator), torch.rand(tokens, experts, generator=generator)
