"""Rotary positions as models write them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from typing_extensions import override

Turn = Callable[[Tensor], Tensor]


def halves(x: Tensor) -> Tensor:
    """As Llama does."""
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)


def pairs(x: Tensor) -> Tensor:
    """As GPT-J and Cohere do."""
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


class Rotary(torch.nn.Module):
    """Heads of some channels, turned by a position's angle."""

    def __init__(self, turn: Turn, channels: int, rows: int = 8, *, wide: bool = False) -> None:
        super().__init__()
        self.turn, self.wide = turn, wide
        angles = torch.outer(torch.arange(rows), torch.linspace(1.0, 0.1, channels // 2)).repeat(1, 2)
        self.cos, self.sin = (t if wide else t.half() for t in (angles.cos(), angles.sin()))

    @override
    def forward(self, x: Tensor) -> Tensor:
        wider = x.float() if self.wide else x
        return (wider * self.cos + self.turn(wider) * self.sin).to(x.dtype)


def heads(channels: int, rows: int = 8) -> Tensor:
    """Return three heads of some rows."""
    return torch.randn(1, 3, rows, channels, generator=torch.Generator().manual_seed(2)).half()
