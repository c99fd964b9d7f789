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


Form = Callable[[Tensor, Tensor, Tensor], Tensor]


def some(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The first channels by halves, as Phi and GPT-NeoX do; tables have a number for each of them."""
    part, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    return torch.cat((part * cos + halves(part) * sin, rest), -1)


def last(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The last channels."""
    rest, part = x.split((x.shape[-1] - cos.shape[-1], cos.shape[-1]), -1)
    return torch.cat((rest, part * cos + halves(part) * sin), -1)


def apart(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Halves by themselves, as GPT-OSS does; tables have a number for each of a half."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def sorted_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Neighbours, which go into two halves, as DeepSeek does."""
    first, second = x[..., ::2], x[..., 1::2]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def pairs_apart(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Neighbours by themselves, which stay neighbours."""
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, second * cos + first * sin), -1).flatten(-2)


def complex_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Neighbours as parts of complex numbers, as the first Llama did."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.complex(cos.float(), sin.float())).flatten(-2)


class Parts(torch.nn.Module):
    """Heads of which a model rotates parts, by tables of some width."""

    def __init__(self, form: Form, width: int, rows: int = 8, *, wide: bool = False) -> None:
        super().__init__()
        self.form, self.wide = form, wide
        angles = torch.outer(torch.arange(rows), torch.linspace(1.0, 0.1, width))
        self.cos, self.sin = (t if wide else t.half() for t in (angles.cos(), angles.sin()))

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.form(x.float() if self.wide else x, self.cos, self.sin).to(x.dtype)


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
