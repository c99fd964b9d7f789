"""A Llama as Meta published it: rotary positions turn pairs of channels as complex numbers, by a table `freqs_cis`."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, HIDDEN, HEADS, KEY_HEADS, LAYERS, LONGEST = 53, 32, 4, 2, 3, 24
WIDTH = HIDDEN // HEADS


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(HIDDEN) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


def frequencies(width: int, length: int) -> Tensor:
    """The table of rotations: complex64 [length, width / 2]."""
    rates = 10000.0 ** (-torch.arange(0, width, 2).float() / width)
    angles = torch.outer(torch.arange(length).float(), rates)
    return torch.polar(torch.ones_like(angles), angles)


def turned(x: Tensor, freqs_cis: Tensor) -> Tensor:
    """Queries or keys [batch, length, heads, width], each pair of channels turned by its position."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs_cis.view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)


class Attention(nn.Module):
    """Causal attention of grouped heads; the mask is added to the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wo = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.wk, self.wv = (nn.Linear(HIDDEN, KEY_HEADS * WIDTH, bias=False) for _ in range(2))

    def forward(self, x: Tensor, freqs_cis: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (linear(x).unflatten(-1, (-1, WIDTH)) for linear in (self.wq, self.wk, self.wv))
        q, k = turned(q, freqs_cis), turned(k, freqs_cis)
        k, v = (y.repeat_interleave(HEADS // KEY_HEADS, dim=2) for y in (k, v))
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        scores = q @ k.transpose(2, 3) * WIDTH**-0.5 + mask
        return self.wo((functional.softmax(scores.float(), dim=-1).type_as(q) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.attention_norm, self.ffn_norm = Attention(), RMSNorm(), RMSNorm()
        self.w1, self.w3 = (nn.Linear(HIDDEN, 2 * HIDDEN, bias=False) for _ in range(2))
        self.w2 = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)

    def forward(self, x: Tensor, freqs_cis: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), freqs_cis, mask)
        y = self.ffn_norm(x)
        return x + self.w2(functional.silu(self.w1(y)) * self.w3(y))


class ComplexLlama(nn.Module):
    """Tokens [batch, length] to logits [batch, length, vocabulary].

    Args:
        kept: whether a checkpoint has the table of rotations; Meta's do not.
    """

    def __init__(self, *, kept: bool = False) -> None:
        super().__init__()
        torch.manual_seed(11)
        self.tok_embeddings = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.output = RMSNorm(), nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.register_buffer("freqs_cis", frequencies(WIDTH, LONGEST), persistent=kept)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        x = self.tok_embeddings(tokens)
        mask = torch.full((length, length), float("-inf")).triu(1).type_as(x)
        for layer in self.layers:
            x = layer(x, self.get_buffer("freqs_cis")[:length], mask)
        return self.output(self.norm(x)).float()
