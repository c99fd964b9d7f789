"""Small models with random weights, built from shrunken configurations: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import nn

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]

TOKENS, SENTENCES, VOCABULARY = 16, 2, 128
CACHE_LENGTH = 32
DECODER = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
ENCODER = {k: v for k, v in DECODER.items() if k != "num_key_value_heads"}


class Picked(nn.Module):
    """Calls a model with named inputs and returns one field of what it returns."""

    def __init__(self, model: nn.Module, inputs: tuple[str, ...], field: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.inputs, self.field, self.fixed = model, inputs, field, fixed

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        named = dict(zip(self.inputs, args, strict=True))
        return getattr(self.model(**named, **self.fixed), self.field)


class WithCache(nn.Module):
    """A language model over a static cache of keys and values that are buffers: calls write to them.

    The same module takes a prompt and, later, one token at a time.
    """

    def __init__(self, model: nn.Module, sentences: int, length: int) -> None:
        super().__init__()
        config = model.config
        self.model = model
        self.cache = transformers.StaticCache(config=config, max_cache_len=length)
        width = config.hidden_size // config.num_attention_heads
        self.cache.early_initialization(sentences, config.num_key_value_heads, width, model.dtype, model.device)
        for number, layer in enumerate(self.cache.layers):
            for name, tensor in zip("kvn", (layer.keys, layer.values, layer.cumulative_length), strict=True):
                self.register_buffer(f"{name}{number}", tensor, persistent=False)

    def forward(self, input_ids: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        # Tracing swaps the buffers, and the cache must see those and not the tensors it was made with.
        for number, layer in enumerate(self.cache.layers):
            layer.keys, layer.values, layer.cumulative_length = (getattr(self, f"{n}{number}") for n in "kvn")
            layer.cumulative_length.copy_(position)
        return self.model(input_ids=input_ids, past_key_values=self.cache, use_cache=True).logits


def token_ids(sentences: int = SENTENCES, tokens: int = TOKENS) -> torch.Tensor:
    return torch.randint(5, VOCABULARY - 1, (sentences, tokens))


def language_model(config: Any) -> nn.Module:
    return transformers.AutoModelForCausalLM.from_config(config)


def logits(config: Any) -> Built:
    return Picked(language_model(config), ("input_ids",), "logits", use_cache=False), (token_ids(),)


def llama_config() -> Any:
    return transformers.LlamaConfig(**DECODER)


def llama() -> Built:
    return logits(llama_config())


def llama_mask() -> Built:
    """The first sentence is padded on the left: some rows of its attention are masked as a whole."""
    mask = torch.ones(SENTENCES, TOKENS, dtype=torch.long)
    mask[0, :3] = 0
    model = Picked(language_model(llama_config()), ("input_ids", "attention_mask"), "logits", use_cache=False)
    return model, (token_ids(), mask)


def llama_bf16() -> Built:
    model, inputs = llama()
    return model.to(torch.bfloat16), inputs


def llama_static_prefill() -> Built:
    return WithCache(language_model(llama_config()), 1, CACHE_LENGTH), (token_ids(1), torch.tensor(0))


def llama_static_decode() -> Built:
    return WithCache(language_model(llama_config()), 1, CACHE_LENGTH), (token_ids(1, 1), torch.tensor(7))


def granite() -> Built:
    return logits(transformers.GraniteConfig(**DECODER))


def mistral() -> Built:
    return logits(transformers.MistralConfig(**DECODER, sliding_window=8))


def gpt2() -> Built:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    return logits(transformers.GPT2Config(vocab_size=VOCABULARY, **sizes, bos_token_id=1, eos_token_id=2))


def _encoder(model: nn.Module) -> Built:
    mask = torch.ones(SENTENCES, TOKENS, dtype=torch.long)
    return Picked(model, ("input_ids", "attention_mask"), "last_hidden_state"), (token_ids(), mask)


def bert() -> Built:
    return _encoder(transformers.BertModel(transformers.BertConfig(**ENCODER)))


def distilbert() -> Built:
    sizes = {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}
    return _encoder(transformers.DistilBertModel(transformers.DistilBertConfig(vocab_size=VOCABULARY, **sizes)))


def mlp() -> Built:
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8), nn.Softmax(-1)), (torch.randn(4, 16),)


ZOO: dict[str, Callable[[], Built]] = {
    f.__name__: f
    for f in (
        llama,
        llama_mask,
        llama_bf16,
        llama_static_prefill,
        llama_static_decode,
        granite,
        mistral,
        gpt2,
        bert,
        distilbert,
        mlp,
    )
}


def build(name: str) -> Built:
    """A model of the zoo, in evaluation mode, and example inputs; the same ones every time."""
    torch.manual_seed(0)
    model, inputs = ZOO[name]()
    return model.eval().requires_grad_(False), inputs
