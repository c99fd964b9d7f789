"""What a program of the zoo is: a model with random weights and example inputs, under a name, with tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]

TOKENS, SENTENCES, VOCABULARY = 16, 2, 128
CACHE_LENGTH = 32
PIXELS = 32
ENCODER = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
DECODER = {**ENCODER, "num_key_value_heads": 2}


@dataclass(frozen=True)
class Entry:
    """One program: what makes it, and what kind of model it is."""

    name: str
    make: Callable[[], Built]
    tags: frozenset[str]


class Picked(nn.Module):
    """Calls a model with named inputs and returns one field of what it returns."""

    def __init__(self, model: nn.Module, inputs: tuple[str, ...], field: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.inputs, self.field, self.fixed = model, inputs, field, fixed

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        named = dict(zip(self.inputs, args, strict=True))
        return getattr(self.model(**named, **self.fixed), self.field)


def entries(tag: str, makers: Iterable[Callable[[], Built]], *more: str) -> dict[str, Entry]:
    """Entries with the same tags, named as the functions that make them."""
    return {f.__name__: Entry(f.__name__, f, frozenset({tag, *more})) for f in makers}


def token_ids(sentences: int = SENTENCES, tokens: int = TOKENS) -> torch.Tensor:
    return torch.randint(5, VOCABULARY - 1, (sentences, tokens))


def image(size: int = PIXELS, channels: int = 3, images: int = SENTENCES) -> torch.Tensor:
    return torch.randn(images, channels, size, size)
