"""Attention of narrow heads as models write it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from typing_extensions import override

from tests.unit.transforms.aten_forms.rotations import some

WIDTH, ROWS = 64, 32


class Attention(torch.nn.Module):
    """Four heads of 32 channels, or two of 96; keys and values have fewer if asked for."""

    def __init__(self, heads: int = 4, channels: int = 32, shared: int = 1, *, bias: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads, self.channels = heads, channels
        inner, own = heads * channels, heads * channels // shared
        self.q = torch.nn.Linear(WIDTH, inner, bias=bias)
        self.k = torch.nn.Linear(WIDTH, own, bias=bias)
        self.v = torch.nn.Linear(WIDTH, own, bias=bias)
        self.o = torch.nn.Linear(inner, WIDTH, bias=bias)

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], -1, self.channels).transpose(1, 2)

    def joined(self, y: Tensor) -> Tensor:
        return self.o(y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1))

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(layer(x)) for layer in (self.q, self.k, self.v))
        return self.joined(scaled_dot_product_attention(q, k, v, mask, enable_gqa=k.shape != q.shape))


class Crossed(Attention):
    """Reads queries, keys or values from a tensor of their own."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source

    @override
    def forward(self, x: Tensor, other: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        layers = {"queries": self.q, "keys": self.k, "values": self.v}
        q, k, v = (self.split(layer(other if name == self.source else x)) for name, layer in layers.items())
        return self.joined(scaled_dot_product_attention(q, k, v))


class WrittenOut(Attention):
    """With products and a softmax of all heads of all sequences, and keys and values that are repeated."""

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(layer(x)) for layer in (self.q, self.k, self.v))
        repeat = q.shape[1] // k.shape[1]
        if repeat > 1:
            k, v = (t[:, :, None].expand(-1, -1, repeat, -1, -1).reshape(t.shape[0], -1, *t.shape[2:]) for t in (k, v))
        q, k, v = (t.flatten(0, 1) for t in (q, k, v))
        mask = mask if mask is None else mask.repeat_interleave(self.heads, dim=0).flatten(0, 1)
        scores = (q * self.channels**-0.5) @ k.transpose(-1, -2)
        y = torch.softmax(scores if mask is None else scores + mask, dim=-1) @ v
        rows = y.view(x.shape[0], self.heads, *y.shape[1:]).transpose(1, 2).reshape(-1, self.heads * self.channels)
        return self.o(rows).view(*x.shape[:2], -1)


class Einsum(Attention):
    """With sums by names of dimensions, which torch writes as products of tensors with dimensions of one element."""

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(layer(x)).flatten(0, 1) for layer in (self.q, self.k, self.v))
        scores = torch.einsum("b i d, b j d -> b i j", q, k) * self.channels**-0.5
        scores = scores if mask is None else scores + mask.repeat_interleave(self.heads, dim=0).flatten(0, 1)
        y = torch.einsum("b i j, b j d -> b i d", scores.softmax(-1), v)
        return self.joined(y.unflatten(0, (x.shape[0], self.heads)))


class Rotated(Attention):
    """One layer for queries, keys and values; queries and keys are turned, as Phi-3 does."""

    def __init__(self, heads: int = 2, channels: int = 96) -> None:
        super().__init__(heads, channels, bias=False)
        self.qkv = torch.nn.Linear(WIDTH, 3 * heads * channels)

    def turned(self, x: Tensor) -> Tensor:
        half = self.channels // 2
        return x * 0.5 + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * 0.75

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
        return self.joined(scaled_dot_product_attention(self.turned(q), self.turned(k), v, mask))


class PartlyRotated(Rotated):
    """Two heads of 80 channels of which the first 32 are turned, as those of Phi-2."""

    def __init__(self) -> None:
        super().__init__(2, 80)
        angles = torch.outer(torch.arange(ROWS), torch.linspace(1.0, 0.1, 16)).repeat(1, 2)
        self.cos, self.sin = angles.cos().half(), angles.sin().half()

    @override
    def turned(self, x: Tensor) -> Tensor:
        return some(x, self.cos.to(x.dtype), self.sin.to(x.dtype))


class ByTable(Rotated):
    """Queries and keys are turned by a position's angle, with channels behind them of which there are none."""

    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(ROWS), torch.linspace(1.0, 0.1, self.channels // 2)).repeat(1, 2)
        self.cos, self.sin = angles.cos().half(), angles.sin().half()

    @override
    def turned(self, x: Tensor) -> Tensor:
        half = self.channels // 2
        turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
        rotated = x * self.cos.to(x.dtype) + turned * self.sin.to(x.dtype)
        return torch.cat([rotated, x[..., self.channels :]], dim=-1)


class Multiplied(Rotated):
    """Queries are multiplied by keys that are turned, channel by channel."""

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, _ = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
        return self.joined(q * self.turned(k))


class Stacked(Rotated):
    """One layer whose columns are queries, keys and values of all heads, as vision transformers have it."""

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        parts = self.qkv(x).reshape(*x.shape[:2], 3, self.heads, self.channels).permute(2, 0, 3, 1, 4)
        return self.joined(scaled_dot_product_attention(*parts.unbind(0), mask))


class Sliced(Rotated):
    """One layer of which queries, keys and values are slices, none of them turned."""

    @override
    def turned(self, x: Tensor) -> Tensor:
        return x


def given(rows: int = ROWS) -> Tensor:
    """Return what attention reads, for two sequences."""
    return torch.randn(2, rows, WIDTH, generator=torch.Generator().manual_seed(1)).half()
