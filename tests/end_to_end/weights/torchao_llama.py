"""A Llama layer whose weights torchao quantizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn


def llama(width: int, inner: int, heads: int, shared: int) -> tuple[Any, torch.Tensor, int]:
    """Return a layer with embedding and head in float16, a token, and the bytes of its linear weights.

    Args:
        width: of the hidden states.
        inner: width between the two products of the layer's second part.
        heads: of attention.
        shared: heads of keys and values.
    """
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    config = transformers.LlamaConfig(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=shared,
        vocab_size=1024,
        use_cache=False,
    )
    model = transformers.LlamaForCausalLM(config).half().eval()
    linears = sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Linear))
    return model, torch.randint(0, 1024, (1, 1)), 2 * linears


def agrees_with(model: Any, program: Any, tokens: torch.Tensor) -> bool:
    """Return whether a program gives what torch and torchao compute themselves, to the rounding of DL16."""
    with torch.no_grad():
        ours, theirs = program(tokens).logits.double(), model(tokens).logits.double()
    return float((ours - theirs).abs().max() / theirs.abs().max()) < 4e-3


__all__ = ["agrees_with", "llama"]
