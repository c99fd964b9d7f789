"""A Llama of one layer with weights on the meta device."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM


class Logits(torch.nn.Module):
    """A Llama that returns its logits."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.model = LlamaForCausalLM(config)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Runs the model without a cache."""
        return self.model(input_ids=input_ids, use_cache=False).logits


def layer(hidden: int, tokens: int, inner: int, heads: int, shared: int) -> tuple[Logits, torch.Tensor]:
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=shared,
    )
    with torch.device("meta"):
        return Logits(config).eval(), torch.zeros(1, tokens, dtype=torch.long)
