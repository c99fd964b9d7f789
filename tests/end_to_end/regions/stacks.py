"""Stacks of equal layers, small enough to lower in seconds."""

from __future__ import annotations

import torch
import transformers
from torch import Tensor, nn

WIDTH, HEADS, TOKENS = 64, 2, 8


class Block(nn.Module):
    """An encoder layer; `scale` is a number in the program, not a weight."""

    def __init__(self, scale: float = 1.5, width: int = WIDTH) -> None:
        super().__init__()
        self.scale = scale
        self.norm, self.mixed = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.second = nn.Linear(width, width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.mixed(self.norm(x)).chunk(3, -1)
        q, k, v = (t.reshape(batch, tokens, HEADS, -1).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-1, -2) * 0.2 + mask
        x = x + self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(nn.functional.gelu(self.up(self.second(x)))) * self.scale


class Stack(nn.Module):
    """Layers with the given numbers in them, between an input that all share and a head."""

    def __init__(self, scales: tuple[float, ...]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(Block(scale) for scale in scales)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        added = (1.0 - mask) * -8.0
        for layer in self.layers:
            x = layer(x, added)
        return self.head(torch.tanh(x))


class Pair(nn.Module):
    """A layer that gives two tensors, one of them a truth value."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, y: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        for _ in range(3):
            x = torch.sigmoid(self.left(x) - y) * 2 - 0.5
            y = torch.where(chosen, torch.tanh(self.right(y)) + x, y * 0.5)
        return x, y, x > y


class Pairs(nn.Module):
    """Three layers with several results."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.pairs = nn.ModuleList(Pair() for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, chosen = x * 2, x > 0
        for pair in self.pairs:
            x, y, chosen = pair(x, y, chosen)
        return x + y, torch.where(chosen, x, y)


def stack(*scales: float) -> tuple[Stack, tuple[Tensor, Tensor]]:
    """A stack, and inputs that mask two tokens."""
    mask = torch.ones(1, 1, 1, TOKENS)
    mask[..., -2:] = 0
    generator = torch.Generator().manual_seed(1)
    return Stack(scales).eval(), (torch.randn(1, TOKENS, WIDTH, generator=generator), mask)


def pairs() -> tuple[Pairs, tuple[Tensor]]:
    """Layers of several results, and an input."""
    return Pairs().eval(), (torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(2)),)


class DecodeStep(nn.Module):
    """Reads one token at a position, and updates a cache of keys and values that are buffers."""

    def __init__(self, layers: int, length: int = 32) -> None:
        super().__init__()
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=100,
            hidden_size=WIDTH,
            intermediate_size=2 * WIDTH,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
        self.model = transformers.AutoModelForCausalLM.from_config(config)
        self.cache = transformers.StaticCache(config=config, max_cache_len=length)
        self.cache.early_initialization(1, 2, WIDTH // 4, self.model.dtype, self.model.device)
        for number, layer in enumerate(self.cache.layers):
            for name, tensor in zip("kvn", (layer.keys, layer.values, layer.cumulative_length), strict=True):
                self.register_buffer(f"{name}{number}", tensor, persistent=False)

    def forward(self, token: Tensor, position: Tensor) -> Tensor:
        for number, layer in enumerate(self.cache.layers):
            layer.keys, layer.values, layer.cumulative_length = (getattr(self, f"{n}{number}") for n in "kvn")
            layer.cumulative_length.copy_(position)
        return self.model(input_ids=token, past_key_values=self.cache, use_cache=True).logits


def decode_step(layers: int) -> tuple[DecodeStep, tuple[Tensor, Tensor]]:
    """A decode step in an empty cache."""
    return DecodeStep(layers).eval(), (torch.tensor([[3]]), torch.tensor(0))
