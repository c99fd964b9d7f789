"""A decoder whose static cache of keys and values is made of buffers, so that each call updates it in place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import StaticCache


class CachedDecoder(nn.Module):
    """Reads tokens of one sequence and writes their keys and values into the cache."""

    def __init__(self, model: Any, positions: int) -> None:
        """Makes the cache, on the device and in the type of the model.

        Args:
            model: a language model of transformers.
            positions: of the cache.
        """
        super().__init__()
        config = model.config
        self.model, self.cache = model, StaticCache(config=config, max_cache_len=positions)
        width = config.hidden_size // config.num_attention_heads
        self.cache.early_initialization(1, config.num_key_value_heads, width, model.dtype, torch.device(model.device))
        for number, layer in enumerate(self.cache.layers):
            for name, tensor in zip("kvn", (layer.keys, layer.values, layer.cumulative_length), strict=True):
                self.register_buffer(f"{name}{number}", tensor, persistent=False)

    def forward(self, input_ids: Tensor, position: Tensor) -> Tensor:
        """Return logits of 1 x tokens x vocabulary.

        Args:
            input_ids: 1 x tokens.
            position: of the first token, a tensor without dimensions.
        """
        for number, layer in enumerate(self.cache.layers):
            layer.keys, layer.values, layer.cumulative_length = (getattr(self, f"{n}{number}") for n in "kvn")
            layer.cumulative_length.copy_(position)
        return self.model(input_ids=input_ids, past_key_values=self.cache, use_cache=True).logits
