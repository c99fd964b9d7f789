"""Mixtures of experts as transformers computes them: rows sorted by expert, products of groups, rows put back."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

moe = pytest.importorskip("transformers.integrations.moe")


class Mixture(nn.Module):
    """Experts of two matrices and two biases, of which a router's numbers choose some for each token."""

    has_gate = has_bias = True
    is_transposed = has_post_expert_norm = _is_expert_parallel = False

    def __init__(self, experts: int = 5, width: int = 8, inner: int = 8, choices: int = 2) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(experts)

        def drawn(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator) / shape[-1] ** 0.5, requires_grad=False)

        self.num_experts, self.choices = experts, choices
        self.gate_up_proj, self.gate_up_proj_bias = drawn(experts, 2 * inner, width), drawn(experts, 2 * inner)
        self.down_proj, self.down_proj_bias = drawn(experts, width, inner), drawn(experts, width)

    def _apply_gate(self, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1)
        return nn.functional.silu(gate) * up

    def forward(self, x: Tensor, scores: Tensor) -> Tensor:
        weights, chosen = torch.topk(scores, self.choices, -1)
        return moe.grouped_mm_experts_forward(self, x, chosen, weights)


class Given(Mixture):
    """Experts that the caller chooses, who may choose one twice."""

    def forward(self, x: Tensor, scores: Tensor) -> Tensor:
        chosen = scores[:, : self.choices].long().clamp(0, self.num_experts - 1)
        return moe.grouped_mm_experts_forward(self, x, chosen, scores[:, : self.choices])


def inputs(tokens: int = 7, model: Mixture | None = None) -> tuple[Tensor, Tensor]:
    """Rows of tokens, and the numbers of a router."""
    experts, _, width = (5, 0, 8) if model is None else model.gate_up_proj.shape
    generator = torch.Generator().manual_seed(tokens)
    return torch.randn(tokens, width, generator=generator), torch.rand(tokens, experts, generator=generator)
