"""Models that interleave the columns of a product: those of queries, keys and values, or of a gate and its operand."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from typing_extensions import override

from tests.unit.transforms.aten_forms.mixtures import Mixture

WIDTH, HEADS, CHANNELS = 64, 2, 64


def layer(columns: int) -> nn.Linear:
    """Return a layer of some columns."""
    made = nn.Linear(WIDTH, columns).half()
    generator = torch.Generator().manual_seed(columns)
    for weight in made.parameters():
        weight.detach().copy_(torch.randn(weight.shape, generator=generator) / 8)
    return made


def rows(count: int = 64) -> Tensor:
    """Return one sequence."""
    return torch.randn(1, count, WIDTH, generator=torch.Generator().manual_seed(count)).half()


class ByHead(nn.Module):
    """Heads that have a query, a key and a value each, as Bloom and Persimmon do."""

    def __init__(self) -> None:
        super().__init__()
        self.all = layer(HEADS * 3 * CHANNELS)

    @override
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.all(x).view(*x.shape[:-1], HEADS, 3, CHANNELS).unbind(-2)
        return q * k + v


class Turned(ByHead):
    """The same, of which a permutation puts heads before rows."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.all(x).view(*x.shape[:-1], HEADS, 3, CHANNELS).permute(0, 2, 3, 1, 4).unbind(2)
        return q * k + v


class OfHeads(ByHead):
    """Slices of the channels of heads, as in GPT-NeoX."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.all(x).view(*x.shape[:-1], HEADS, 3 * CHANNELS).transpose(1, 2).chunk(3, -1)
        return q * k + v


class Alternating(nn.Module):
    """A gate in every other column, as in GPT-OSS."""

    def __init__(self) -> None:
        super().__init__()
        self.both = layer(256)

    @override
    def forward(self, x: Tensor) -> Tensor:
        both = self.both(x)
        return both[..., ::2] * both[..., 1::2].sigmoid()


class AlternatingExperts(Mixture):
    """Experts whose gate is in every other column, and whose weights are transposed, as those of GPT-OSS."""

    is_transposed = True

    def __init__(self, experts: int = 3, width: int = 64, inner: int = 64, choices: int = 2) -> None:
        super().__init__(experts, width, inner, choices)
        for name in ("gate_up_proj", "down_proj"):
            setattr(self, name, nn.Parameter(getattr(self, name).transpose(1, 2).contiguous(), requires_grad=False))

    @override
    def _apply_gate(self, x: Tensor) -> Tensor:
        return (x[..., 1::2] + 1) * nn.functional.silu(x[..., ::2])


class Sums(Alternating):
    """All columns are read once more."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        both = self.both(x)
        return both[..., ::2] * both[..., 1::2] + both.sum(-1, keepdim=True)


class Halves(Alternating):
    """A gate of adjoining sticks, which `split-products` takes apart."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.both(x).chunk(2, -1)
        return gate * up


class Rows(Alternating):
    """Rows are taken apart."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        both = self.both(x)
        return both[:, ::2] * both[:, 1::2]


class Overlapping(Alternating):
    """Columns that two readers take."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        both = self.both(x)
        return both[..., ::2].sum(-1) + both[..., ::4].sum(-1)


class Shared(Alternating):
    """A weight that is read again."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + nn.functional.linear(x, self.both.weight).sum()
