"""Programs that the end-to-end tests run; weights are random, shapes unaligned on purpose."""

from __future__ import annotations

import torch
from torch import nn

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


class Logits(nn.Module):
    """A causal language model that returns its logits only."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, use_cache=False).logits


def softmax() -> Built:
    torch.manual_seed(0)
    return Softmax(), (torch.randn(7, 200),)


def mlp() -> Built:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(147, 333), nn.ReLU(), nn.Linear(333, 65)).eval(), (torch.randn(5, 147),)


def llama(layers: int = 1, tokens: int = 33, hidden: int = 64, vocabulary: int = 100) -> Built:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=hidden + 32,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return Logits(LlamaForCausalLM(config)).eval(), (torch.randint(0, vocabulary, (1, tokens)),)


def llama_2_layers() -> Built:
    return llama(layers=2, hidden=256, vocabulary=512)


PROGRAMS = {"softmax": softmax, "mlp": mlp, "llama_layer": llama, "llama_2_layers": llama_2_layers}
