"""Language models, with and without a cache, with experts, and with a state: shrunken, nothing is downloaded."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

from tests.models.entry import (
    CACHE_LENGTH,
    DECODER,
    SENTENCES,
    TOKENS,
    VOCABULARY,
    Built,
    Picked,
    entries,
    token_ids,
)


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


def language_model(config: Any, **how: Any) -> nn.Module:
    return transformers.AutoModelForCausalLM.from_config(config, **how)


def logits(config: Any, **how: Any) -> Built:
    return Picked(language_model(config, **how), ("input_ids",), "logits", use_cache=False), (token_ids(),)


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


def qwen2() -> Built:
    return logits(transformers.Qwen2Config(**DECODER))


def gemma2() -> Built:
    return logits(transformers.Gemma2Config(**DECODER, head_dim=8, sliding_window=8))


def phi3() -> Built:
    return logits(transformers.Phi3Config(**DECODER, pad_token_id=0, bos_token_id=1, eos_token_id=2))


def opt() -> Built:
    sizes = {"hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    positions = {"max_position_embeddings": 64, "word_embed_proj_dim": 32}
    return logits(transformers.OPTConfig(vocab_size=VOCABULARY, **sizes, **positions))


def bloom() -> Built:
    return logits(transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4))


def mixtral_config() -> Any:
    return transformers.MixtralConfig(**DECODER, num_local_experts=4, num_experts_per_tok=2)


def mixtral() -> Built:
    return logits(mixtral_config())


def mixtral_batched_experts() -> Built:
    return logits(mixtral_config(), experts_implementation="batched_mm")


def granitemoe() -> Built:
    return logits(transformers.GraniteMoeConfig(**DECODER, num_local_experts=4, num_experts_per_tok=2))


def mamba() -> Built:
    return logits(transformers.MambaConfig(vocab_size=VOCABULARY, hidden_size=32, state_size=8, num_hidden_layers=2))


DECODERS = (
    entries("decoder", (llama, llama_mask, llama_bf16))
    | entries("decoder", (llama_static_prefill, llama_static_decode), "kvcache")
    | entries("decoder", (granite, mistral, qwen2, gemma2, phi3, gpt2, opt, bloom))
    | entries("moe", (mixtral, mixtral_batched_experts, granitemoe))
    | entries("ssm", (mamba,))
)
